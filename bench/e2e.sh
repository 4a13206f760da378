#!/usr/bin/env bash
# Measures /status patches per second of a real API server: without a webhook (a), with the null server registered as both webhooks
# (b), and with statusgate as both (c).
#
#     bench/e2e.sh [--seconds N] [--rounds N] [--objects N] [--connections N]          also as `make bench-e2e`
#
# The order alternates (a b c, a c b, …), because etcd grows with every patch and slows the later run. The ratio is the median over
# the rounds. A missed target is printed, but is not an error. A rejected patch is an error: both registrations use failurePolicy
# Fail, so that every failed webhook call is visible.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/e2e.sh [--seconds N] [--rounds N] [--objects N] [--connections N]
  --seconds N      how long each of a, b and c is in a round (6)
  --rounds N       how many rounds (6)
  --objects N      how many objects are patched in turn (100)
  --connections N  how many patches are under way at once (8)
USAGE
}

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

seconds=6 rounds=6 objects=100 connections=8
while [[ $# -gt 0 ]]; do
    case $1 in
        --seconds) seconds=$(number "$1" "${2-}") ;;
        --rounds) rounds=$(number "$1" "${2-}") ;;
        --objects) objects=$(number "$1" "${2-}") ;;
        --connections) connections=$(number "$1" "${2-}") ;;
        -h | --help) usage && exit ;;
        *) usage >&2 && exit 2 ;;
    esac
    shift 2
done
((connections < objects)) || die "more connections than objects: patches would wait for one another"
readonly BYTES_OF_OBJECT=3000 # reviews have about 11 KB
readonly RESOURCE=apis/vshn.appcat.vshn.io/v1/xvshnpostgresqls
# The operator, because most writers have their rights from RBAC.
readonly TOKEN=operator-token

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
        alive control-plane
        ((SECONDS < until)) || die "no control plane after 120 s: $(<"$work/control-plane.log")"
        pause 0.1
    done
    # shellcheck source=/dev/null
    . "$work/plane/env"
    export KUBECONFIG
}

kubectl_() { kubectl --request-timeout 20s "$@" >/dev/null; }

create_objects() {
    local i until=$((SECONDS + 20))
    kubectl_ apply -f "$root/deploy/crds/appcat-example.yaml"
    kubectl_ wait --for=condition=Established --timeout 20s crd/xvshnpostgresqls.vshn.appcat.vshn.io
    # A CRD is Established before the API server serves it.
    until kubectl_ get --raw "/$RESOURCE" 2>/dev/null; do
        ((SECONDS < until)) || die "the API server does not serve the CRD"
        pause 0.2
    done
    for ((i = 1; i <= objects; i++)); do
        awk -v what=object -v name="pg-$i" -v bytes="$BYTES_OF_OBJECT" -f "$bench/review.awk"
    done >"$work/objects.json"
    kubectl_ create -f "$work/objects.json"
}

registration() { # SERVER
    local kind path authority
    authority=$(base64 -w0 <"$work/certs/ca.crt")
    for kind in Mutating Validating; do
        path=mutate && [[ $kind == Mutating ]] || path=validate
        cat <<YAML
---
apiVersion: admissionregistration.k8s.io/v1
kind: ${kind}WebhookConfiguration
metadata: {name: bench}
webhooks:
  - name: $path.bench.statusgate.dev
    admissionReviewVersions: [v1]
    clientConfig: {url: "https://127.0.0.1:${port[$1]}/$path", caBundle: $authority}
    failurePolicy: Fail
    matchPolicy: Equivalent
    sideEffects: None
    timeoutSeconds: 10
    rules:
      - {apiGroups: [vshn.appcat.vshn.io], apiVersions: [v1], operations: [UPDATE], resources: [xvshnpostgresqls/status], scope: "*"}
YAML
    done
}

# Sends one patch; the answer is in $work/answer.
patch_one() {
    local code
    code=$(curl -sS --max-time 20 --cacert "$APISERVER_CA" -H "Authorization: Bearer $TOKEN" -X PATCH -o "$work/answer" -w '%{http_code}' \
        -H 'Content-Type: application/merge-patch+json' \
        --data "{\"status\":{\"currentVersion\":\"15.$SRANDOM\"}}" "$APISERVER_URL/$RESOURCE/pg-1/status") || return
    [[ $code == 200 ]]
}

# The API server sees a registration a moment later: patch until it calls the webhook.
register() { # SERVER
    local until=$((SECONDS + 20))
    start_server "$1"
    registration "$1" | kubectl_ apply -f -
    until (($(counter "${probe[$1]}" statusgate_connections_accepted_total) >= 1)); do
        patch_one || die "the API server rejects a patch: $(<"$work/answer")"
        ((SECONDS < until)) || die "the API server does not call $1"
        pause 0.1
    done
}

unregister() { # SERVER
    local until=$((SECONDS + 20))
    kubectl_ delete mutatingwebhookconfiguration,validatingwebhookconfiguration bench
    stop "$1"
    # The server is stopped and failurePolicy is Fail: patches are rejected until the API server sees both deletions.
    until patch_one; do
        ((SECONDS < until)) || die "patches are rejected without a webhook: $(<"$work/answer")"
        pause 0.1
    done
}

# drive NAME SECONDS none|null|statusgate: sets $line to patches per second, p50 and p99 in ms, and the server's CPU per patch in us.
# A command substitution would delay signals.
drive() {
    local requests taken p50 p99 failed before=0 after=0
    [[ $3 == none ]] || before=$(cpu_of "$3")
    run wrk wrk --threads 1 --connections "$connections" --duration "${2}s" --timeout 30s -s "$bench/wrk.lua" \
        "$APISERVER_URL/$RESOURCE" -- status "$TOKEN" "$objects" "$1" >"$work/wrk" 2>&1 || die "wrk failed: $(<"$work/wrk")"
    [[ $3 == none ]] || after=$(cpu_of "$3")
    read -r _ requests taken p50 p99 failed < <(grep '^result ' "$work/wrk") || die "wrk said nothing: $(<"$work/wrk")"
    ((requests > 0)) || die "the API server answered nothing"
    ((failed == 0)) || die "$failed of $requests patches failed: $(<"$work/wrk")"
    line=$(awk -v r="$requests" -v s="$taken" -v p50="$p50" -v p99="$p99" -v ns="$((after - before))" \
        'BEGIN { printf "%.2f %.1f %.1f %.1f\n", r / s, p50 / 1000, p99 / 1000, ns / r / 1000 }')
}

measure() { # ROUND none|null|statusgate
    [[ $2 == none ]] || register "$2"
    # Warm-up: connections and, in the first round, first statuses.
    drive "warm-$1-$2" 1 "$2"
    drive "round-$1-$2" "$seconds" "$2"
    echo "$2 $1 $line" >>"$work/rounds"
    # Progress, because a run takes minutes.
    printf 'round %d of %d  %-11s %8.1f patches/s\n' "$1" "$rounds" "$2" "${line%% *}" >&2
    [[ $2 == none ]] && return
    alive "$2"
    [[ $2 == null ]] || check_counters
    unregister "$2"
}

# Checks that both webhooks were called and allowed every patch. The null server always allows.
check_counters() {
    local webhook all good
    for webhook in mutate validate; do
        all=$(counter "${probe[statusgate]}" "statusgate_requests_total{.*webhook=\"$webhook\"")
        good=$(counter "${probe[statusgate]}" "statusgate_decisions_total{.*webhook=\"$webhook\",decision=\"allowed\"")
        ((all > seconds)) || die "/$webhook was called $all times only"
        # In the first round, statuses get their defaults, so `patched` is expected too.
        ((good * 2 > all)) || die "of $all calls of /$webhook, $good were allowed as they were"
    done
}

build >&2
start_control_plane
create_objects
printf 'API server %s, %d objects, %d connections, %d rounds of %d s each; %s CPUs, load %s\n' \
    "$(kubectl --request-timeout 20s get --raw /version | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p')" \
    "$objects" "$connections" "$rounds" "$seconds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
patch_one || die "the API server rejects a patch: $(<"$work/answer")"
for ((round = 1; round <= rounds; round++)); do
    measure "$round" none
    if ((round % 2)); then order=(null statusgate); else order=(statusgate null); fi
    for server in "${order[@]}"; do measure "$round" "$server"; done
done

awk "$MEDIAN"'
    { rate[$1, $2] = $3; value[$1, 3, $2] = $3; value[$1, 4, $2] = $4; value[$1, 5, $2] = $5; value[$1, 6, $2] = $6; if ($2 > n) n = $2 }
    function of(what, column,    i, list) {
        for (i = 1; i <= n; i++) list[i] = value[what, column, i]
        return median(list, n)
    }
    function row(title, what) { printf "%-32s %10.1f %9.1f %9.1f %14.0f\n", title, of(what, 3), of(what, 4), of(what, 5), of(what, 6) }
    function ratio(one, other,    i, list) {
        for (i = 1; i <= n; i++) list[i] = rate[one, i] / rate[other, i]
        return median(list, n)
    }
    END {
        printf "\n%-32s %10s %9s %9s %14s\n", "", "patches/s", "p50 ms", "p99 ms", "its CPU us"
        row("(a) no webhook", "none")
        row("(b) null server as both", "null")
        row("(c) statusgate as both", "statusgate")
        printf "\n(b) / (a)  %.3f\n(c) / (a)  %.3f\n", ratio("null", "none"), ratio("statusgate", "none")
        printf "(c) / (b)  %.3f\n", ratio("statusgate", "null")
        # The ratio of two noisy rates is precise to a few percent. All CPUs are busy, so CPU is what a patch costs.
        more = of("statusgate", 6) - of("null", 6)
        share = more * of("null", 3) / cpus / 1e4
        printf "CPU of statusgate minus CPU of the null server: %.0f us a patch, %.1f %% of what a patch takes on %d CPUs, of at most 2 %%   %s\n", \
            more, share, cpus, (share <= 2 ? "met" : "MISSED")
    }' cpus="$(nproc)" "$work/rounds"
