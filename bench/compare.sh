#!/usr/bin/env bash
# Compares the cost of a review with another build, such as an earlier commit. Both servers run in turn.
#
#     bench/compare.sh [--webhook validate|mutate] [--size KB] [--seconds N] [--rounds N] OTHER-BINARY      also as `make bench-compare`
#
# Results of different runs cannot be compared. Every ratio is the median of the ratios of neighboring rounds. Each round starts both
# servers anew: the same program, started twice, differs by up to a tenth. Each build uses its example policies.
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
for ((round = 1; round <= rounds; round++)); do
    # Each is the first in every other round.
    ((round % 2)) && order=(other this) || order=(this other)
    for name in "${order[@]}"; do
        start_server "$name" "${!name-}"
        # The first second is a warm-up.
        drive_webhook "$name" "$webhook" "$work/review.json" 1
        drive_webhook "$name" "$webhook" "$work/review.json" "$seconds"
        echo "$name $round $line" >>"$work/rounds"
        stop "$name"
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
        printf "CPU us a review: other %.1f, this %.1f; ", median(other, rounds), median(this, rounds)
        # The median sorts the ratios.
        printf "this / other %.3f", median(ratio, rounds)
        printf ", half of the rounds from %.3f to %.3f\n", ratio[int((rounds + 3) / 4)], ratio[int((3 * rounds + 3) / 4)]
    }' "$work/rounds"
