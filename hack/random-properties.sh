#!/usr/bin/env bash
# Runs the property tests with a random seed, for at most SECONDS (60) after the build.
#
#     hack/random-properties.sh [SECONDS]
#     SEED=N hack/random-properties.sh        repeats a run
#
# `cargo test` uses fixed seeds: tests/support has that of the integration tests, .cargo/config.toml
# that of the unit tests. A failing property prints its smallest failing case, and this script prints
# the seed. A run that reaches the time limit without a failure passes.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

SEED=${SEED:-$((1000 + RANDOM * 32768 + RANDOM))}
export STATUSGATE_RANDOM_SEEDS=$SEED PROPTEST_RNG_SEED=$SEED
repeat="repeat with SEED=$SEED hack/random-properties.sh"
echo "random-properties: $repeat" >&2

targets=(--lib)
for target in $(grep -lr 'proptest!\|TestRunner::new' tests --include='*.rs' | cut -d/ -f2 | sort -u); do
    [[ $target == support ]] || targets+=(--test "${target%.rs}")
done
cargo test --quiet --no-run "${targets[@]}"

status=0
timeout "${1:-60}" cargo test --no-fail-fast "${targets[@]}" || status=$?
case $status in
    0) ;;
    124) echo "random-properties: stopped at the time limit" >&2 ;;
    *) echo "random-properties: failed; $repeat" >&2 && exit 1 ;;
esac
