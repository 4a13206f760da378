#!/usr/bin/env bash
# Attacks a server as any peer can that reaches its ports, on 127.0.0.1 and on a real control plane: documents, deep and wide JSON, long lists,
# peers that do not read, slow bodies and idle connections.
#
#     bench/hostile.sh [--at-once N] [--peers N] [--seconds N] [BINARY]           also as a part of `make bench`
#
# The server may use 2 GiB of address space. A missed target is printed, but is not an error. A server that ends or does not answer is an error.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/hostile.sh [--at-once N] [--peers N] [--seconds N] [BINARY]
  --at-once N   how many requests of one body are sent at once (16)
  --peers N     how many peers are slow, do not read or are idle; of idle ones, ten times as many (200)
  --seconds N   how long they stay (8)
USAGE
}

[[ -n ${CONTROL_PLANE-} ]] || exec "$(dirname -- "$0")/../hack/with-control-plane.sh" "$0" "$@"
# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

at_once=16 peers=200 seconds=8 binary=
while [[ $# -gt 0 ]]; do
    case $1 in
        --at-once) at_once=$(number "$1" "${2-}") ;;
        --peers) peers=$(number "$1" "${2-}") ;;
        --seconds) seconds=$(number "$1" "${2-}") ;;
        -h | --help) usage && exit ;;
        -*) usage >&2 && exit 2 ;;
        *) binary=$1 && shift && continue ;;
    esac
    shift 2
done

# Prints a value COUNT times, with commas. A # in it is the number of the repetition.
list() { # COUNT VALUE
    awk -v count="$1" -v value="${2//\\/\\\\}" 'BEGIN {
        parts = split(value, part, "#")
        for (i = 0; i < count; i++) {
            text = part[1]
            for (j = 2; j <= parts; j++) text = text i part[j]
            printf "%s%s", (i ? "," : ""), text
        }
    }'
}

# A review of an object of this text, for GROUP/RESOURCE. OLD and USER are optional.
review() { # GROUP RESOURCE SUBRESOURCE OBJECT [OLD] [USER]
    printf '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"UPDATE","userInfo":%s,' "${6:-{\}}"
    printf '"resource":{"group":"%s","version":"%s","resource":"%s"},"subResource":"%s","oldObject":%s,"object":%s}}' \
        "$1" "$([[ $1 == statusgate.dev ]] && echo v1alpha1 || echo v1)" "$2" "$3" "${5:-null}" "$4"
}
status() { review vshn.appcat.vshn.io xvshnpostgresqls status "{\"metadata\":{\"name\":\"n\"},\"status\":$1}" "${2:+{\"status\":$2\}}" "${3-}"; }
conditions() { status "{\"conditions\":[$(list "$@")]}"; }
document() { # MEMBERS: of the spec of a policy
    review statusgate.dev statuspolicies '' "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"convention\":\"metav1\",$1,
        \"resources\":[{\"apiGroups\":[\"g.example\"],\"apiVersions\":[\"v1\"],\"resources\":[\"things\"]}]}}"
}

# Bodies by their path. The numbers of values are below the limit of 200,000, and those of documents below 256 KiB.
bodies() {
    mkdir -p "$work"/{documents,validate}
    cd "$work/documents"
    local rule='{"name":"r#","expression":"true","message":"m"}'
    document "\"rules\":[$(list 250 "$rule")]" >250-rules
    document "\"rules\":[$(list 4500 "$rule")]" >4500-rules
    document "\"rules\":[$(list 20000 "$rule")]" >20000-rules
    document "\"fields\":[$(list 64 '{"path":"/status/f#","pattern":"^([a-z]{1,50}){1,40}$"}')]" >64-patterns
    document "\"fields\":[$(list 5000 '{"path":"/status/f#","enum":["a","b"]}')]" >5000-fields
    document "\"backfill\":[$(list 6000 '{"path":"/status/f#","value":"a"}')]" >6000-defaults
    document "$(list 20000 '"k#":1')" >20000-unknown-keys
    document "\"x\":[$(list 80000 '[]')]" >80000-lists
    cd "$work/validate"
    head -c $(((8 << 20) - 1)) /dev/zero | tr '\0' '[' >brackets
    conditions 190000 '{}' >empty-conditions
    conditions 60000 '{"type":1,"status":"x"}' >wrong-conditions
    conditions 39000 '{"type":"A#","status":"x","reason":"","message":7}' >different-conditions
    conditions 190000 1 >numbers
    status "{\"x\":[$(list 95000 '{"a":{}}')]}" >objects
    status "{$(list 190000 '"k#":1')}" "{$(list 190000 '"k#":2')}" >two-wide-statuses
    status "{\"x\":[$(list 180000 '"\u0061\u0061\u0061\u0061"')]}" >escapes
    status "{\"phase\":\"$(head -c 8000000 /dev/zero | tr '\0' x)\"}" >long-phase
    status '{}' '{}' "{\"groups\":[$(list 2000000 '""')]}" >groups
}

# post PATH FILE COUNT PARALLEL: sends a body, and sets $slowest to the milliseconds of the slowest answer. Each answer is one: 200, 400 or 503.
post() {
    run post curl --no-progress-meter --max-time 60 --parallel --parallel-immediate --parallel-max "$4" --cacert "$work/certs/ca.crt" --data-binary "@$2" \
        -o /dev/null -w '%{http_code} %{time_total}\n' "$(url hostile "$1")?[1-$3]" >"$work/answers" || die "no answer to ${2##*/}"
    alive hostile
    slowest=$(awk '$2 > most { most = $2 } END { printf "%d", most * 1000 }' "$work/answers")
}

resident() { awk '$1 == "VmHWM:" { printf "%d", $2 / 1024 }' "/proc/${children[hostile]}/status"; }

row() { printf '%-34s %10s %10s %12s %10s\n' "$@"; }

# The CPU of one request after the other, then the memory of many at once.
attack() { # PATH FILE
    local before after kilobytes ms
    kilobytes=$((($(stat -c %s "$2") + 1023) / 1024))
    before=$(cpu_of "${children[hostile]}")
    post "$1" "$2" 2 1
    after=$(cpu_of "${children[hostile]}")
    ms=$(awk -v ns=$((after - before)) -v kb="$kilobytes" 'BEGIN { printf "%.0f", ns / 2e6 / kb * 1024 }')
    echo "$1 $ms $slowest ${2##*/}" >>"$work/rows"
    post "$1" "$2" "$at_once" "$at_once"
    row "/$1 ${2##*/}" "$kilobytes" "$ms" "$slowest" "$(resident)"
}

# How long a review and a probe take now.
others() { # NAME
    local from to
    post validate "$work/review" 1 1
    from=$EPOCHREALTIME
    ask "${probe[hostile]}" /livez || die "/livez does not answer during $1"
    to=$EPOCHREALTIME
    echo "$((slowest > (${to/./} - ${from/./}) / 1000 ? slowest : (${to/./} - ${from/./}) / 1000))" >>"$work/others"
    row "$1" '' '' "$(tail -n 1 "$work/others")" "$(resident)"
}

# Peers that pipeline reviews and do not read the answers.
deaf() {
    local i request
    request=$(printf 'POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' "$(stat -c %s "$work/deaf-review")")
    for ((i = 0; i < 500; i++)); do printf '%s\r\n\r\n' "$request" && cat "$work/deaf-review"; done >"$work/pipelined"
    for ((i = 0; i < (peers + 3) / 4; i++)); do
        # shellcheck disable=SC2016 # the arguments of sh
        start "deaf-$i" sh -c 'openssl s_client -quiet -connect "$1" <"$2" 2>&1 | sleep "$3"' deaf "127.0.0.1:${port[hostile]}" "$work/pipelined" "$seconds"
    done
    pause "$seconds"
    others "$((i)) peers that do not read"
    for ((; i > 0; i--)); do stop "deaf-$((i - 1))"; done
}

# Peers that send the first 40 KB of 8 MiB and then a KB a second.
slow() {
    start slow curl --no-progress-meter --max-time "$seconds" --parallel --parallel-immediate --parallel-max "$peers" --cacert "$work/certs/ca.crt" \
        --limit-rate 1k --data-binary "@$work/validate/brackets" -o /dev/null "$(url hostile validate)?[1-$peers]" 2>"$work/slow.log"
    pause "$((seconds / 4 + 1))"
    others "$peers slow bodies"
    post mutate "$work/validate/two-wide-statuses" "$at_once" "$at_once"
    row 'the same and /mutate two-wide-st…' '' '' "$slowest" "$(resident)"
    stop slow
}

# The connections are those of another process: bash aborts when it waits for a descriptor above 1,023.
idle() { # PORT NAME
    # shellcheck disable=SC2016 # the arguments of bash
    start idle bash -c 'for ((i = 0; i < $2; i++)); do exec {connection}<>"/dev/tcp/127.0.0.1/$1" || break; done; echo "$i" >"$3"; exec sleep 60' \
        idle "$1" "$((10 * peers))" "$work/opened" 2>"$work/idle.log"
    until [[ -s $work/opened ]]; do
        alive idle
        pause 0.1
    done
    others "$(<"$work/opened") idle connections to the $2"
    rm "$work/opened"
    stop idle
}

ulimit -S -n "$(ulimit -H -n)"
"$root/hack/packages.sh" curl openssl
statusgate=${binary:-$(compile statusgate)}
"$statusgate" certs --out "$work/certs" >/dev/null
"$statusgate" manifests crds | kubectl apply -f - >/dev/null
kubectl wait --for=condition=Established crd/statuspolicies.statusgate.dev crd/statusconventions.statusgate.dev >/dev/null
(bodies)
status '{"conditions":[]}' >"$work/review"
conditions 100 '{"type":"A#","status":"x","reason":"","message":7}' >"$work/deaf-review"
policies=$root/deploy/policies wrapper=(prlimit --as=$((2 << 30))) flags=(--watch-policies --kubeconfig "$KUBECONFIG")
start_server hostile "$statusgate"

printf '\n%d requests at once, %d peers for %d s; %s CPUs, load %s; %d MB resident after the start\n\n' \
    "$at_once" "$peers" "$seconds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)" "$(resident)"
row '' 'body KB' 'CPU ms/MB' 'slowest ms' 'peak MB'
for body in "$work"/documents/*; do attack documents "$body"; done
for body in "$work"/validate/*; do
    attack validate "$body"
    attack mutate "$body"
done
deaf
slow
idle "${port[hostile]}" 'webhook port'
idle "${probe[hostile]}" 'probe port'
alive hostile
awk -v peak="$(resident)" '
    function target(what, value, most, unit) {
        printf "%-44s %6d  of at most %4d %-4s %s\n", what, value, most, unit, (value <= most ? "met" : "MISSED")
    }
    NF == 1 { if ($1 > other) other = $1; next }
    $1 == "documents" { if ($3 > document) document = $3; next }
    $2 > cpu { cpu = $2; body = $4 }
    END {
        print ""
        target("CPU for a MB of a review, at worst", cpu, 60, "ms")
        target("the answer to a document", document, 1000, "ms")
        target("a review or a probe in between", other, 1000, "ms")
        target("resident, at most", peak, 128, "MB")
    }' "$work/rows" "$work/others"
stop hostile
