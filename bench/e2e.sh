#!/usr/bin/env bash
# Measures what a registration costs a real API server: /status patches per second and the CPU of the API server, without a webhook,
# with the null server and with statusgate.
#
#     bench/e2e.sh [--seconds N] [--rounds N] [--objects N] [--connections N] [--fail]          also as `make bench-e2e`
#
# Each variant is measured next to the same patches without a webhook, in alternating order, because etcd grows with every patch and slows
# the later run. Ratios are of these pairs.
# A missed target is printed, but is not an error. A rejected patch is an error: the hand-written registrations use failurePolicy
# Fail, so that failed calls are visible. The printed ones have the default, Ignore, without --fail; the number of reviews shows missing calls.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/e2e.sh [--seconds N] [--rounds N] [--objects N] [--connections N] [--fail]
  --seconds N      how long each variant is measured in a round (6)
  --rounds N       how many rounds (6)
  --objects N      how many objects are patched in turn (100)
  --connections N  how many patches are under way at once (8)
  --fail           the printed registrations have failurePolicy Fail instead of Ignore
USAGE
}

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

seconds=6 rounds=6 objects=100 connections=8 failure=Ignore
while [[ $# -gt 0 ]]; do
    case $1 in
        --seconds) seconds=$(number "$1" "${2-}") ;;
        --rounds) rounds=$(number "$1" "${2-}") ;;
        --objects) objects=$(number "$1" "${2-}") ;;
        --connections) connections=$(number "$1" "${2-}") ;;
        --fail) failure=Fail && shift && continue ;;
        -h | --help) usage && exit ;;
        *) usage >&2 && exit 2 ;;
    esac
    shift 2
done
((connections < objects)) || die "more connections than objects: patches would wait for one another"
readonly BYTES_OF_OBJECT=3000 # reviews have about 11 KB
readonly RESOURCE=apis/vshn.appcat.vshn.io/v1/xvshnpostgresqls
# NAME:SERVER:CHANGES:REVIEWS: which member each patch changes, and how many reviews it causes at least. Of the printed webhooks, the
# validating one reads the message, and both read the instanceNamespace. No rule reads the currentVersion.
readonly VARIANTS=(validate:statusgate:message:1 null:null:message:0 both:statusgate:message:2 printed:statusgate:message:1
    every:statusgate:instanceNamespace:2 unread:statusgate:currentVersion:0)
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
    api_server=$(<"$work/plane/kube-apiserver.pid")
    version=$(kubectl --request-timeout 20s get --raw /version | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p')
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

registration() {
    local kind path authority kinds=(Mutating Validating)
    case $variant in
        validate) kinds=(Validating) ;;
        printed | every | unread)
            # Exit code 1: the example policies name resources that have no definition here.
            "$statusgate" manifests registrations --crds "$root/deploy/crds/appcat-example.yaml" --url "https://127.0.0.1:${port[$server]}" \
                --ca-file "$work/certs/ca.crt" --failure-policy "$failure" --kubernetes-version "$version" 2>"$work/unregistered" \
                || (($? == 1)) || die "no registrations: $(<"$work/unregistered")"
            return
            ;;
    esac
    authority=$(base64 -w0 <"$work/certs/ca.crt")
    for kind in "${kinds[@]}"; do
        path=mutate && [[ $kind == Mutating ]] || path=validate
        cat <<YAML
---
apiVersion: admissionregistration.k8s.io/v1
kind: ${kind}WebhookConfiguration
metadata: {name: bench}
webhooks:
  - name: $path.bench.statusgate.dev
    admissionReviewVersions: [v1]
    clientConfig: {url: "https://127.0.0.1:${port[$server]}/$path", caBundle: $authority}
    failurePolicy: Fail
    matchPolicy: Equivalent
    sideEffects: None
    timeoutSeconds: 10
    rules:
      - {apiGroups: [vshn.appcat.vshn.io], apiVersions: [v1], operations: [UPDATE], resources: [xvshnpostgresqls/status], scope: "*"}
YAML
    done
}

# patch STATUS [QUERY]: sends one patch. $code is the HTTP code; the answer is in $work/answer.
patch() {
    code=$(curl -sS --max-time 20 --cacert "$APISERVER_CA" -H "Authorization: Bearer $TOKEN" -X PATCH -o "$work/answer" -w '%{http_code}' \
        -H 'Content-Type: application/merge-patch+json' --data "{\"status\":$1}" "$APISERVER_URL/$RESOURCE/pg-1/status${2-}")
}

# Every webhook is called for this change.
patch_one() { patch "{\"instanceNamespace\":\"vshn-$SRANDOM\"}" && [[ $code == 200 ]]; }

# Whether the webhook rejects an invalid phase: the CRD has no enum. A dry run, because without a webhook it would be stored.
judged() { patch '{"phase":"Invalid"}' '?dryRun=All' && [[ $code == 422 ]]; }

called() {
    patch_one || die "the API server rejects a patch: $(<"$work/answer")"
    if [[ $server == null ]]; then
        (($(counter "${probe[null]}" statusgate_connections_accepted_total) >= 1))
    else
        judged
    fi
}

# The API server sees a registration a moment later.
register() {
    local until=$((SECONDS + 20))
    start_server "$server"
    registration >"$work/$variant.yaml"
    kubectl_ apply -f "$work/$variant.yaml"
    until called; do
        ((SECONDS < until)) || die "$variant: the API server does not call $server: $(<"$work/answer")"
        pause 0.1
    done
}

unregister() {
    local until=$((SECONDS + 20))
    kubectl_ delete -f "$work/$variant.yaml"
    stop "$server"
    # The server is stopped: with failurePolicy Fail, patches are rejected until the API server sees every deletion.
    until patch_one; do
        ((SECONDS < until)) || die "patches are rejected without a webhook: $(<"$work/answer")"
        pause 0.1
    done
}

# Sets $now to the CPU time of the API server and the server in ns, and the reviews and those that allowed the write as it was.
count() {
    now=("$(cpu_of "$api_server")" 0 0 0)
    [[ $server == none ]] && return
    now[1]=$(cpu_of "${children[$server]}")
    [[ $server == null ]] && return
    now[2]=$(counter "${probe[$server]}" 'statusgate_requests_total{')
    now[3]=$(counter "${probe[$server]}" 'statusgate_decisions_total{.*decision="allowed"')
}

# drive NAME SECONDS: sets $requests, $now to the differences of `count`, and $line to patches per second, p50 and p99 in ms, the CPU
# of the API server and of the server in ms a patch, and reviews a patch. A command substitution would delay signals.
drive() {
    local before taken p50 p99 failed i
    count
    before=("${now[@]}")
    run wrk wrk --threads 1 --connections "$connections" --duration "${2}s" --timeout 30s -s "$bench/wrk.lua" \
        "$APISERVER_URL/$RESOURCE" -- status "$TOKEN" "$objects" "$1" "$changes" >"$work/wrk" 2>&1 || die "wrk failed: $(<"$work/wrk")"
    count
    for i in "${!now[@]}"; do now[i]=$((now[i] - before[i])); done
    read -r _ requests taken p50 p99 failed < <(grep '^result ' "$work/wrk") || die "wrk said nothing: $(<"$work/wrk")"
    ((requests > 0)) || die "the API server answered nothing"
    ((failed == 0)) || die "$failed of $requests patches failed: $(<"$work/wrk")"
    line=$(awk -v r="$requests" -v s="$taken" -v p50="$p50" -v p99="$p99" -v api="${now[0]}" -v own="${now[1]}" -v n="${now[2]}" \
        'BEGIN { printf "%.2f %.1f %.1f %.3f %.4f %.2f\n", r / s, p50 / 1000, p99 / 1000, api / r / 1e6, own / r / 1e6, n / r }')
}

# measure ROUND VARIANT: with its registrations, or with the server `none`.
measure() {
    local variant server changes reviews requests
    IFS=: read -r variant server changes reviews <<<"$2"
    [[ $server == none ]] || register
    # Warm-up: connections and, in the first round, first statuses.
    drive "warm-$1-$variant-$server" 1
    drive "round-$1-$variant-$server" "$seconds"
    echo "$variant $([[ $server == none ]] && echo none || echo with) $1 $line" >>"$work/rounds"
    # Progress, because a run takes minutes.
    printf 'round %d of %d  %-9s %-10s %8.1f patches/s\n' "$1" "$rounds" "$variant" "$server" "${line%% *}" >&2
    [[ $server == none ]] && return
    alive "$server"
    # The null server always allows, and does not count.
    ((now[2] >= requests * reviews)) || die "$variant: $requests patches caused ${now[2]} reviews only"
    # Statuses may get their defaults, so `patched` is expected too.
    ((now[3] * 2 >= now[2])) || die "$variant: of ${now[2]} reviews, ${now[3]} allowed the write as it was"
    # Otherwise an absent registration would look fast.
    [[ $server == null ]] || judged || die "$variant: the API server accepts an invalid phase: $(<"$work/answer")"
    unregister
}

build >&2
null_server=$(compile null_server)
start_control_plane
create_objects
printf 'API server %s, %d objects, %d connections, %d rounds of %d s each; %s CPUs, load %s\n' \
    "$version" "$objects" "$connections" "$rounds" "$seconds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
patch_one || die "the API server rejects a patch: $(<"$work/answer")"
for ((round = 1; round <= rounds; round++)); do
    for ((i = 0; i < ${#VARIANTS[@]}; i++)); do
        pair=("${VARIANTS[i]}")
        IFS=: read -r variant _ changes _ <<<"${pair[0]}"
        none=$variant:none:$changes:0
        if ((round % 2)); then pair=("$none" "${pair[@]}"); else pair+=("$none"); fi
        for one in "${pair[@]}"; do measure "$round" "$one"; done
    done
done

conditional=1
grep -q matchConditions "$work/printed.yaml" || conditional=0
awk "$MEDIAN"'
    { for (i = 4; i <= NF; i++) value[$1, $2, i, $3] = $i; if ($3 > n) n = $3 }
    function of(what, with, column,    i, list) {
        for (i = 1; i <= n; i++) list[i] = value[what, with, column, i]
        return median(list, n)
    }
    # Sets least and most. Returns the median.
    function ratio(one, other, without,    i, list) {
        for (i = 1; i <= n; i++) {
            list[i] = value[one, "with", 4, i] / value[other, without, 4, i]
            if (i == 1 || list[i] < least) least = list[i]
            if (i == 1 || list[i] > most) most = list[i]
        }
        return median(list, n)
    }
    function row(title, what,    middle) {
        middle = ratio(what, what, "none")
        printf "%-36s %9.1f %9.1f %8.3f (%.3f to %.3f) %7.1f %7.1f %8.2f %8.2f %10.3f %8.2f\n", title, of(what, "none", 4), of(what, "with", 4),
            middle, least, most, of(what, "with", 5), of(what, "with", 6), of(what, "none", 7), of(what, "with", 7), of(what, "with", 8),
            of(what, "with", 9)
    }
    function target(title, what, goal,    reached) {
        reached = ratio(what, what, "none")
        printf "%s: %.3f of none, at least %.2f   %s\n", title, reached, goal, (reached >= goal ? "met" : "MISSED")
    }
    END {
        printf "\n%-36s %19s %25s %15s %17s\n", "", "patches/s", "", "ms", "API server ms"
        printf "%-36s %9s %9s %25s %7s %7s %8s %8s %10s %8s\n", "", "none", "with", "with / none (spread)", "p50", "p99", "none", "with",
            "server ms", "reviews"
        row("statusgate as /validate", "validate")
        row("null server as both", "null")
        row("statusgate as both", "both")
        row("printed, validate reads the field", "printed")
        row("printed, both read the field", "every")
        row("printed, no rule reads the field", "unread")
        print "API server and server: CPU time a patch. Reviews: of statusgate, a patch."
        if (conditional) {
            target("printed, validate reads the field", "printed", 0.85)
            target("printed, no rule reads the field", "unread", 0.95)
        } else
            print "The printed registrations have no match conditions, which need Kubernetes 1.28: the targets 0.85 and 0.95 do not apply."
        middle = ratio("both", "null", "with")
        printf "statusgate / null server, both as both: %.3f (%.3f to %.3f)\n", middle, least, most
        # The ratio of two noisy rates is precise to a few percent. All CPUs are busy, so CPU is what a patch costs.
        more = of("both", "with", 8) - of("null", "with", 8)
        share = more * of("null", "with", 4) / cpus / 10
        printf "CPU of statusgate minus CPU of the null server: %.0f us a patch, %.1f %% of what a patch takes on %d CPUs, of at most 2 %%   %s\n", \
            more * 1000, share, cpus, (share <= 2 ? "met" : "MISSED")
    }' cpus="$(nproc)" conditional="$conditional" "$work/rounds"
