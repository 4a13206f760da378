#!/bin/sh
# The compiler of hack/fuzz.sh: clippy, which is rustc with lints, and counters for libFuzzer in the crates of this repository.
# A build script runs without libFuzzer.
case " $* " in *" --crate-name build_script_build "*) exec clippy-driver "$@" ;; esac
# shellcheck disable=SC2086
exec clippy-driver "$@" $FUZZ_COUNTERS
