#!/usr/bin/env bash
# Compares the cost of a review with another build, such as an earlier commit. Both servers run in turn.
#
#     bench/compare.sh [--webhook validate|mutate] [--size KB] [--seconds N] [--rounds N] OTHER-BINARY      also as `make bench-compare`
#
# Results of different runs cannot be compared. Every ratio is the median of the ratios of neighboring rounds. Each build uses its
# example policies.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/compare.sh [--webhook validate|mutate] [--size KB] [--seconds N] [--rounds N] OTHER-BINARY
  --webhook W   which of the two (validate)
  --size KB     how large the review is (11)
  --seconds N   how long a server is driven in a round (1)
  --rounds N    how many rounds there are (7)
USAGE
}

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

webhook=validate size=11 seconds=1 rounds=7 other=
while [[ $# -gt 0 ]]; do
    case $1 in
        --webhook) webhook=${2-} ;;
        --size) size=$(number "$1" "${2-}") ;;
        --seconds) seconds=$(number "$1" "${2-}") ;;
        --rounds) rounds=$(number "$1" "${2-}") ;;
        -h | --help) usage && exit ;;
        -*) usage >&2 && exit 2 ;;
        *) other=$1 && shift && continue ;;
    esac
    shift 2
done
[[ $webhook == validate || $webhook == mutate ]] || { usage >&2 && exit 2; }
[[ -x $other ]] || die "this is no program: ${other:-(none given)}"
other=$(realpath -- "$other")

build >&2
awk -v bytes=$((size * 1024)) -f "$bench/review.awk" >"$work/review.json"
start_server other "$other"
start_server this
for ((round = 0; round <= rounds; round++)); do
    for name in other this; do
        drive_webhook "$name" "$webhook" "$work/review.json" "$seconds"
        # The first round is a warm-up.
        ((round == 0)) || echo "$name $round $line" >>"$work/rounds"
    done
done

printf '\n/%s of %d KB, %d connections, %d rounds of %d s for each; %s CPUs, load %s\n\n' \
    "$webhook" "$size" "$CONNECTIONS" "$rounds" "$seconds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
awk "$MEDIAN"'
    { cpu[$1, $2] = $4; if ($2 > rounds) rounds = $2 }
    END {
        for (i = 1; i <= rounds; i++) {
            other[i] = cpu["other", i]
            this[i] = cpu["this", i]
            ratio[i] = this[i] / other[i]
        }
        printf "CPU us a review: other %.1f, this %.1f; this / other %.3f\n", median(other, rounds), median(this, rounds), median(ratio, rounds)
    }' "$work/rounds"
