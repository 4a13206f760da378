#!/bin/sh
# The compiler of .ci/run: clippy, which is rustc with lints, and counters for libFuzzer in the fuzz targets only. So all steps share one build
# of all other crates.
case $CARGO_PKG_NAME in
statusgate-fuzz) exec "${0%/*}/fuzz-rustc.sh" "$@" ;;
*) exec clippy-driver "$@" ;;
esac
