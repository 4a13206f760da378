#!/usr/bin/env bash
# Runs every benchmark but first-minutes.sh once with the smallest load and a debug build, so that none stops working unnoticed: a script must succeed and
# end its output with a number. The numbers mean nothing.
#
#     bench/smoke.sh             also as `make bench-smoke`
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
export AT_ONCE=1 COUNTS="1 3" ROUNDS=1 REVIEWS=5
short=(--seconds 1 --rounds 1)

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
smoke() {
    local begin=$SECONDS status=0 log=$work/$BASHPID
    "$@" >"$log" 2>"$log.err" </dev/null || status=$?
    if [[ $status -eq 0 ]] && tail -n 3 "$log" | grep -q '[0-9]'; then
        echo "bench-smoke: $((SECONDS - begin)) s: $*"
    else
        tail -n 40 "$log.err" "$log"
        echo "bench-smoke: failed with exit code $status: $*"
        return 1
    fi
}

hack/packages.sh wrk curl time # first, so that two benchmarks do not install at once
cargo build --profile test --bin statusgate --examples
BUILT=$(realpath -- "${CARGO_TARGET_DIR:-target}")/debug
export BUILT # no benchmark builds: that would exchange the program under the other one
failed=0
# Two at once, because those on an API server wait most of the time.
beside() {
    [[ $(jobs -rp | wc -l) -lt 2 ]] || wait -n || failed=1
    smoke "$@" &
}
beside bench/e2e.sh "${short[@]}" --objects 10 --connections 2
beside bench/conventions.sh "${short[@]}"
beside bench/managed.sh --policies 3 --seconds 1
beside bench/run.sh "${short[@]}" --size 4
beside bench/burst.sh "$BUILT/statusgate"
beside bench/hostile.sh --at-once 2 --peers 8 --seconds 1 "$BUILT/statusgate"
beside bench/policies.sh "${short[@]}"
beside bench/compare.sh "${short[@]}" "$BUILT/statusgate"
beside bench/backfill.sh --rounds 1 --objects 20 --many 1
beside bench/check.sh --objects 100 --rounds 1
while [[ -n $(jobs -p) ]]; do
    wait -n || failed=1
done
exit "$failed"
