#!/usr/bin/env bash
# Compares `statusgate backfill` with a bare patch loop of the same concurrency on a real API server, and measures its memory for many
# objects.
#
#     bench/backfill.sh [--rounds N] [--objects N] [--concurrency N] [--many N]             also as `make bench-backfill`
#
# The bare loop (examples/patch_loop.rs) knows the names of the objects and sends a patch for each. Backfill also lists, judges and
# handles conflicts. Both make the same change to objects of a third field manager, each with its own field manager: a new manager
# costs the API server more.
#
# The order alternates (a b, b a, …), because etcd grows with every patch and slows the later run. The ratio is the median over the
# rounds. The table also has the CPU time per write of API server with etcd, and of the client, which other load affects less.
# A missed target is printed, but is not an error. A missing write is an error.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/backfill.sh [--rounds N] [--objects N] [--concurrency N] [--many N]
  --rounds N       how many rounds (6)
  --objects N      how many objects are patched in each (3000)
  --concurrency N  how many patches are under way at once (8)
  --many N         how many thousand objects of 5 KB memory is measured with (100)
USAGE
}

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

rounds=6 objects=3000 concurrency=8 many=100
while [[ $# -gt 0 ]]; do
    case $1 in
        --rounds) rounds=$(number "$1" "${2-}") ;;
        --objects) objects=$(number "$1" "${2-}") ;;
        --concurrency) concurrency=$(number "$1" "${2-}") ;;
        --many) many=$(number "$1" "${2-}") ;;
        -h | --help) usage && exit ;;
        *) usage >&2 && exit 2 ;;
    esac
    shift 2
done
readonly RESOURCE=/apis/test.statusgate.dev/v1/gadgets
readonly PHASE='[{"op":"add","path":"/status/phase","value":"Unknown"}]'
readonly RESET='[{"op":"add","path":"/status","value":{"instanceNamespace":"n"}}]'

# hack/control-plane.sh ends when its stdin closes: a pipe of this script.
start_control_plane() {
    local until=$((SECONDS + 120)) assets
    assets=$("$root/hack/control-plane.sh" assets)
    type -P kubectl >/dev/null || PATH=$assets:$PATH
    mkfifo "$work/alive"
    "$root/hack/control-plane.sh" run "$work/plane" <"$work/alive" >/dev/null 2>"$work/control-plane.log" &
    children[control-plane]=$!
    # shellcheck disable=SC2034  # held open, never written to
    exec {plane}>"$work/alive"
    until [[ -e $work/plane/ready ]]; do
        kill -0 "${children[control-plane]}" 2>/dev/null || die "no control plane: $(<"$work/control-plane.log")"
        ((SECONDS < until)) || die "no control plane after 120 s: $(<"$work/control-plane.log")"
        pause 0.1
    done
    # shellcheck source=/dev/null
    . "$work/plane/env"
    export KUBECONFIG
}

create_objects() {
    local until=$((SECONDS + 20)) i
    kubectl apply -f "$root/tests/cluster/harness/crds.yaml" >/dev/null
    until kubectl get --raw "$RESOURCE" >/dev/null 2>&1; do
        ((SECONDS < until)) || die "the API server does not serve the CRD"
        pause 0.2
    done
    for ((i = 0; i < objects; i++)); do
        awk -v what=object -v name="g-$i" -v bytes=3000 -f "$bench/review.awk" |
            sed -e 's|vshn.appcat.vshn.io/v1|test.statusgate.dev/v1|; s|XVSHNPostgreSQL|Gadget|'
    done >"$work/objects.json"
    kubectl create -f "$work/objects.json" >/dev/null
    cat >"$work/policy.yaml" <<'YAML'
apiVersion: statusgate.dev/v1alpha1
kind: StatusPolicy
metadata: {name: bench}
spec:
  convention: appcat
  resources:
    - {apiGroups: [test.statusgate.dev], apiVersions: [v1], resources: [gadgets]}
YAML
}

loop() { # MANAGER PATCH
    run loop "$patch_loop" --kubeconfig "$KUBECONFIG" --path "$RESOURCE" --prefix g --count "$objects" --concurrency "$concurrency" \
        --manager "$1" --patch "$2"
}

backfill() {
    run backfill "$statusgate" backfill --kubeconfig "$KUBECONFIG" --policies "$work/policy.yaml" --concurrency "$concurrency" \
        >"$work/backfill.out" 2>"$work/backfill.err"
    grep -qE "^bench +Gadget +$objects +0 " "$work/backfill.out" || die "not every object was patched: $(<"$work/backfill.out")"
}

# used: the CPU seconds of the API server with etcd, and of all children of ours that have ended, in $servers and $clients.
used() {
    local plane=${children[control-plane]} pid stats=()
    for pid in $(<"/proc/$plane/task/$plane/children"); do stats+=("/proc/$pid/stat"); done
    servers=$(awk -v ticks="$(getconf CLK_TCK)" '{ sum += $14 + $15 } END { printf "%.2f", sum / ticks }' "${stats[@]}")
    # Not in a pipe, whose subshell has its own times.
    times >"$work/times"
    clients=$(tr ms '  ' <"$work/times" | awk 'NR == 2 { printf "%.3f", 60 * $1 + $2 + 60 * $3 + $4 }')
}

# timed NAME COMMAND...: appends the writes per second and the CPU milliseconds per write of servers and client to rates.
timed() {
    local begin end servers clients servers_before clients_before
    used
    servers_before=$servers clients_before=$clients begin=$EPOCHREALTIME
    "${@:2}"
    end=$EPOCHREALTIME
    used
    awk -v name="$1" -v round="$round" -v count="$objects" -v took="$begin $end" -v servers="$servers_before $servers" \
        -v clients="$clients_before $clients" '
        function passed(both,    times) { split(both, times, " "); return times[2] - times[1] }
        BEGIN { print name, round, count / passed(took), 1000 * passed(servers) / count, 1000 * passed(clients) / count }' >>"$work/rates"
    tail -n 1 "$work/rates" | awk '{ printf "  %s: %.0f writes/s; CPU of a write %.2f ms servers, %.2f ms client\n", $1, $3, $4, $5 }' >&2
}

speed() {
    local order
    start_control_plane
    create_objects
    for ((round = 1; round <= rounds; round++)); do
        echo "round $round of $rounds" >&2
        order=(bare backfill)
        ((round % 2)) || order=(backfill bare)
        for who in "${order[@]}"; do
            # The effects of the reset (connections, etcd's delay) are the same for both.
            loop controller "$RESET"
            case $who in
                bare) timed bare loop patch-loop "$PHASE" ;;
                backfill) timed backfill backfill ;;
            esac
        done
    done
    awk "$MEDIAN"'
        { rate[$1, $2] = $3; servers[$1, $2] = $4; clients[$1, $2] = $5; if ($2 > rounds) rounds = $2 }
        function middle(values, who,    row, i) {
            for (i = 1; i <= rounds; i++) row[i] = values[who, i]
            return median(row, rounds)
        }
        function told(label, who) {
            printf "%-16s %5.0f writes/s; CPU of a write %.2f ms servers, %.2f ms client\n", label, middle(rate, who), \
                middle(servers, who), middle(clients, who)
        }
        END {
            for (i = 1; i <= rounds; i++) {
                ratio[i] = rate["backfill", i] / rate["bare", i]
                printf "  round %d: backfill / bare loop %.3f\n", i, ratio[i]
                spent[i] = (servers["bare", i] + clients["bare", i]) / (servers["backfill", i] + clients["backfill", i])
            }
            told("bare patch loop", "bare")
            told("backfill", "backfill")
            ratio_ = median(ratio, rounds)
            printf "backfill / bare patch loop: %.3f (target 0.90 or more)%s\n", ratio_, ratio_ < 0.9 ? "  MISSED" : ""
            printf "the same by CPU time: %.3f\n", median(spent, rounds)
        }' "$work/rates"
}

# The peak of a run over many objects, dry and writing.
memory() {
    local url peak line count=$((many * 1000)) how flags
    start list "$list_server" --objects "$count" --bytes 5000 >"$work/list.url"
    until [[ -s $work/list.url ]]; do pause 0.05; done
    url=$(<"$work/list.url")
    printf '{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "%s"}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}' "$url" >"$work/list.kubeconfig"
    for how in 'dry run' writing; do
        flags=(--output json)
        [[ $how == writing ]] || flags+=(--dry-run)
        start many "$statusgate" backfill --kubeconfig "$work/list.kubeconfig" --resource vshnredis "${flags[@]}" >"$work/many.out" 2>"$work/many.err"
        # The peak only grows, so the last value counts.
        peak=0
        while line=$(grep VmHWM "/proc/${children[many]}/status" 2>/dev/null); do
            peak=$(awk '{ print $2 }' <<<"$line")
            pause 0.02
        done
        wait "${children[many]}" || die "the run over many objects failed: $(<"$work/many.err")"
        unset 'children[many]'
        [[ $(wc -l <"$work/many.out") -eq $count ]] || die "not every object was processed"
        awk -v kb="$peak" -v count="$count" -v how="$how" 'BEGIN {
            printf "peak of %d objects of 5 KB, %s: %.1f MB (target 60 MB)%s\n", count, how, kb / 1000, (kb > 60000 ? "  MISSED" : "") }'
    done
    stop list
}

statusgate=$(compile statusgate)
patch_loop=$(compile patch_loop)
list_server=$(compile list_server)
memory
speed
