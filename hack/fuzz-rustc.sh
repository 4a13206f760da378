#!/bin/sh
# The compiler of hack/fuzz.sh: clippy, which is rustc with lints, and counters for libFuzzer in the crates of this repository.
# A build script runs without libFuzzer.
case " $* " in *" --crate-name build_script_build "*) exec clippy-driver "$@" ;; esac
exec clippy-driver "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
