#!/usr/bin/env bash
# Measures what many policies cost: servers with 1, 100 and 1,000 policies judge the same review of 11 KB, which one of them selects.
#
#     bench/policies.sh [--seconds N] [--rounds N]             also as a part of `make bench`
#
# The servers run in turn, in rounds. Every ratio is the median over the rounds. A missed target is printed, but is not an error. A wrong
# answer is an error.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/policies.sh [--seconds N] [--rounds N]
  --seconds N   how long a server is driven in a round (1)
  --rounds N    how many rounds there are (7)
USAGE
}

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

seconds=1 rounds=7
seconds_and_rounds "$@"
read -ra COUNTS <<<"${COUNTS:-1 100 1000}"

# The last policy selects the review; the others have the same convention and other API groups.
policies_yaml() { # COUNT
    local number group
    for ((number = 1; number <= $1; number++)); do
        group=group-$number.example.com
        ((number < $1)) || group=vshn.appcat.vshn.io
        printf 'apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: policy-%d}\n' "$number"
        printf 'spec: {convention: appcat, resources: [{apiGroups: [%s], apiVersions: ["*"], resources: ["*"]}]}\n---\n' "$group"
    done
}

build >&2
awk -v bytes=$((11 * 1024)) -f "$bench/review.awk" >"$work/review.json"
for count in "${COUNTS[@]}"; do
    policies=$work/$count.yaml
    policies_yaml "$count" >"$policies"
    start_server "policies-$count"
done

printf '\n%d connections, %d rounds of %d s for each server; %s CPUs, load %s\n\n' \
    "$CONNECTIONS" "$rounds" "$seconds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
for ((round = 0; round <= rounds; round++)); do
    for count in "${COUNTS[@]}"; do
        drive_webhook "policies-$count" validate "$work/review.json" "$seconds"
        # The first round is a warm-up.
        ((round == 0)) || echo "$count $round $line" >>"$work/rounds"
    done
done
for count in "${COUNTS[@]}"; do
    all_allowed "policies-$count" 'statusgate_requests_total{.*webhook="validate"' \
        "statusgate_decisions_total{policy=\"policy-$count\",webhook=\"validate\",decision=\"allowed\""
    awk -v count="$count" '$1 == "VmRSS:" { print count, "memory", $2 / 1024 }' "/proc/${children[policies-$count]}/status" >>"$work/rounds"
done

awk "$MEDIAN"'
    $2 == "memory" { memory[$1] = $3; next }
    { cpu[$1, $2] = $4; if (!seen[$1]++) counts[++n] = $1; if ($2 > rounds) rounds = $2 }
    END {
        printf "%-10s %14s %20s %12s\n", "policies", "CPU us/review", "ratio to one policy", "memory MB"
        for (c = 1; c <= n; c++) {
            for (i = 1; i <= rounds; i++) { own[i] = cpu[counts[c], i]; ratio[i] = own[i] / cpu[counts[1], i] }
            last = median(ratio, rounds)
            printf "%-10d %14.1f %20.3f %12.1f\n", counts[c], median(own, rounds), last, memory[counts[c]]
        }
        printf "\nCPU with %d policies: %.3f times one (target: 1.05)%s\n", counts[n], last, (last > 1.05 ? "  MISSED" : "")
        printf "memory with %d policies: %.1f MB (target: 25)%s\n", counts[n], memory[counts[n]], (memory[counts[n]] > 25 ? "  MISSED" : "")
    }' "$work/rounds"
