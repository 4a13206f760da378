#!/usr/bin/env bash
# Measures judging and loading for each built-in convention (examples/judging.rs), and complete reviews over TLS, as in `make bench`. They
# have 11 KB and the typical number of conditions of the convention.
#
#     bench/conventions.sh [--seconds N] [--rounds N]             also as `make bench-conventions`
#
# One server runs all conventions in turn, in rounds. Every ratio is the median over the rounds. A missed target is printed, but is
# not an error. An answer with a finding is an error.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/conventions.sh [--seconds N] [--rounds N]
  --seconds N   how long a convention is driven in a round (1)
  --rounds N    how many rounds there are (7)
USAGE
}

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

seconds=1 rounds=7
seconds_and_rounds "$@"

build >&2
judging=$(compile judging)
# It fails for a review with a finding.
"$judging"
mkdir "$work/reviews"
"$judging" "$work/reviews"
# shellcheck disable=SC2034  # for start_server
policies=$work/reviews/policies.yaml
start_server statusgate
conventions=()
for review in "$work"/reviews/*.json; do conventions+=("$(basename "$review" .json)"); done

printf '\n%d connections, %d rounds of %d s for each convention; %s CPUs, load %s\n\n' \
    "$CONNECTIONS" "$rounds" "$seconds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
for ((round = 0; round <= rounds; round++)); do
    for convention in "${conventions[@]}"; do
        drive_webhook statusgate validate "$work/reviews/$convention.json" "$seconds"
        # The first round is a warm-up.
        ((round == 0)) || echo "$convention $round $line" >>"$work/rounds"
    done
done
all_allowed statusgate 'statusgate_requests_total{.*webhook="validate"' 'statusgate_decisions_total{.*webhook="validate",decision="allowed"'

awk "$MEDIAN"'
    { cpu[$1, $2] = $4; if (!seen[$1]++) names[++count] = $1; if ($2 > rounds) rounds = $2 }
    END {
        printf "%-18s %14s %16s\n", "convention", "CPU us/review", "ratio to appcat"
        for (n = 1; n <= count; n++) {
            for (i = 1; i <= rounds; i++) { own[i] = cpu[names[n], i]; ratio[i] = own[i] / cpu["appcat", i] }
            ratio_ = median(ratio, rounds)
            if (ratio_ > worst) { worst = ratio_; who = names[n] }
            printf "%-18s %14.1f %16.2f\n", names[n], median(own, rounds), ratio_
        }
        printf "\nworst: %s at %.2f times appcat (target: 1.50)%s\n", who, worst, (worst > 1.5 ? "  MISSED" : "")
    }' "$work/rounds"
