#!/usr/bin/env bash
# Builds the fuzz targets with coverage counters and runs each for SECONDS (60), one after another.
#
#     hack/fuzz.sh [SECONDS] [TARGET…]
#
# A run begins with fuzz/corpus/TARGET and with the inputs of earlier runs, and writes new inputs to target/fuzz/found/TARGET. A failing input
# is written to target/fuzz/failed/, and this script prints how to repeat it.
#
# COUNTERS=targets counts only what an input reaches in the code of the fuzz targets, so after the tests of .ci/run it compiles no other crate:
# enough to repeat all inputs of the corpus and some changes of them. By default, all crates of this repository have counters.
#
# SEED sets the numbers that decide the changes of inputs; by default they are random, and printed. The number of executions in a minute
# still differs.
#
# It needs no nightly compiler: these flags of rustc are stable, and libFuzzer is compiled from the sources in `libfuzzer-sys`.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
shift || true
targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
    for file in fuzz/src/bin/*.rs; do
        targets+=("$(basename "$file" .rs)")
    done
fi

seed=${SEED:-$RANDOM}
echo "fuzz: SEED=$seed"

hack/packages.sh g++
# Not a release: `make test` has compiled the dependencies for this profile, with the features that the example needs.
build=("${CARGO:-cargo}" build --profile test --quiet --package statusgate-fuzz --bins)
case ${COUNTERS:-all} in
all) RUSTC_WORKSPACE_WRAPPER=$PWD/hack/fuzz-rustc.sh "${build[@]}" ;;
targets) RUSTC_WORKSPACE_WRAPPER=$PWD/hack/ci-rustc.sh "${build[@]}" --package statusgate --example kube_status_writes ;;
*) echo "fuzz: COUNTERS must be all or targets, not $COUNTERS" >&2 && exit 2 ;;
esac
binaries=${CARGO_TARGET_DIR:-target}/debug

# The stack of a thread of the server. A deeper recursion must fail here, too.
ulimit -s 2048
mkdir -p target/fuzz/failed
# The targets also make temporary files.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
log=$TMPDIR/log
for target in "${targets[@]}"; do
    found=target/fuzz/found/$target
    mkdir -p "$found"
    options=("-seed=$seed" -max_len=65536 -timeout=60 -rss_limit_mb=2048 "-artifact_prefix=target/fuzz/failed/$target-")
    dictionary=fuzz/dict/$target.dict
    [[ ! -e $dictionary ]] || options+=("-dict=$dictionary")
    status=0
    "$binaries/$target" "${options[@]}" "-max_total_time=$seconds" -print_final_stats=1 "$found" "fuzz/corpus/$target" >"$log" 2>&1 || status=$?
    stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -1; }
    coverage=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) .*/\1 places, \2 features/p' "$log" | tail -1)
    echo "$target: $(stat number_of_executed_units) executions, $(stat average_exec_per_sec)/s, coverage $coverage, $(stat new_units_added) new inputs"
    # The targets report inputs that take long.
    slowest=$(grep '^slowest: ' "$log" | tail -1 || true)
    [[ -z $slowest ]] || echo "$target: $slowest"
    if [[ $status -ne 0 ]]; then
        grep -v '^#' "$log" | tail -60
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
        echo "fuzz: $target failed with ${input:-exit code $status}" >&2
        [[ -z $input ]] || echo "fuzz: repeat with: $binaries/$target $input" >&2
        exit 1
    fi
done
