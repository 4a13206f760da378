#!/usr/bin/env bash
# Runs every benchmark once with the smallest load and a debug build, so that none stops working unnoticed: a script must succeed and
# end its output with a number. The numbers mean nothing.
#
#     bench/smoke.sh             also as `make bench-smoke`
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
export PROFILE=debug AT_ONCE=1 COUNTS="1 3" ROUNDS=1 REVIEWS=5
statusgate=${CARGO_TARGET_DIR:-target}/debug/statusgate
short=(--seconds 1 --rounds 1)

log=$(mktemp)
trap 'rm -f "$log" "$log.err"' EXIT
failed=0
smoke() {
    local begin=$SECONDS status=0
    "$@" >"$log" 2>"$log.err" </dev/null || status=$?
    if [[ $status -ne 0 ]] || ! tail -n 3 "$log" | grep -q '[0-9]'; then
        tail -n 40 "$log.err" "$log"
        echo "bench-smoke: failed with exit code $status: $*"
        failed=1
    else
        echo "bench-smoke: $((SECONDS - begin)) s: $*"
    fi
}

cargo build --bin statusgate --examples
smoke cargo run --example judging
smoke bench/conventions.sh "${short[@]}"
smoke bench/run.sh "${short[@]}" --size 4
smoke bench/policies.sh "${short[@]}"
smoke bench/burst.sh "$statusgate"
smoke bench/compare.sh "${short[@]}" "$statusgate"
smoke bench/check.sh --objects 100 --rounds 1
smoke bench/e2e.sh "${short[@]}" --objects 10 --connections 2
smoke bench/managed.sh --policies 3 --seconds 1
smoke bench/backfill.sh --rounds 1 --objects 20 --many 1
exit "$failed"
