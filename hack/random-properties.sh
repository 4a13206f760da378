#!/usr/bin/env bash
# Runs the property tests with a random seed, for at most SECONDS (60) after the build.
#
#     hack/random-properties.sh [SECONDS]
#     SEED=N hack/random-properties.sh        repeats a run
#
# `cargo test` uses the fixed seed of .cargo/config.toml. A failing property prints its smallest failing case, and this script prints
# the seed. A run that reaches the time limit without a failure passes.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

SEED=${SEED:-$((1000 + RANDOM * 32768 + RANDOM))}
export PROPTEST_RNG_SEED=$SEED
repeat="repeat with SEED=$SEED hack/random-properties.sh"
echo "random-properties: $repeat" >&2

# Each target of cargo with the modules that have properties. `properties` comes first: it has most of them.
targets=("--test properties --")
while IFS=/ read -r _ target module; do
    [[ $target == support || $target == properties ]] || targets+=("--test $target -- ${module//\//::}::")
done < <(grep -lr 'proptest!\|TestRunner::new' tests --include='*.rs' | sed 's/\.rs$//' | sort -r)
targets+=("--lib --")
cargo test --quiet --no-run --lib --test '*'

log=$(mktemp)
trap 'rm -f "$log"' EXIT
end=$((SECONDS + ${1:-60}))
for target in "${targets[@]}"; do
    left=$((end - SECONDS))
    [[ $left -gt 0 ]] || break
    status=0
    # Without capture: the harness would print a failure only at its end, which may be after the limit.
    # shellcheck disable=SC2086
    timeout "$left" cargo test $target --nocapture 2>&1 | tee "$log" || status=$?
    if [[ $status -ne 0 && $status -ne 124 ]] || grep -q 'FAILED' "$log"; then
        echo "random-properties: failed; $repeat" >&2
        exit 1
    fi
done
[[ $SECONDS -lt $end ]] || echo "random-properties: stopped at the time limit" >&2
