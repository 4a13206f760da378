#!/usr/bin/env bash
# Shows statusgate on a real API server. `make demo` runs it with hack/with-control-plane.sh.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
: "${KUBECONFIG:?run this script with hack/with-control-plane.sh}" "${CONTROL_PLANE:?}"
statusgate=$root/target/debug/statusgate
work=$(mktemp -d)
server=
clean() {
    [[ -z $server ]] || kill "$server" 2> /dev/null || true
    [[ -z $server ]] || wait "$server" 2> /dev/null || true
    rm -rf "$work"
}
trap clean EXIT

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
# Prints and runs a command. A rejection does not end the demo; a missing rejection does.
show() { echo "\$ $*" && "$@"; }
rejected() { if "$@"; then echo "demo: the API server should have rejected this" >&2 && exit 1; fi; }
expect() {
    local phase
    phase=$(kubectl get xvshnpostgresqls pg -o 'jsonpath={.status.phase}')
    [[ $phase == "$1" ]] || { echo "demo: the stored phase is '$phase', not '$1'" >&2 && exit 1; }
    echo "stored phase: $phase"
}
# kubectl has --subresource since 1.24; Debian's is older. The API call is the same: PATCH .../status.
patch_status() { # WHO BODY [SHOWN_BODY]
    local who=$1 body=$2 code
    echo "\$ kubectl patch xvshnpostgresqls pg --subresource=status --type=merge -p '${3-$2}'   # as $who"
    code=$(curl -sS --cacert "$APISERVER_CA" -H "Authorization: Bearer $who-token" -X PATCH \
        -H 'Content-Type: application/merge-patch+json' --data "$body" -D "$work/head" -o "$work/answer" -w '%{http_code}' \
        "$APISERVER_URL/apis/vshn.appcat.vshn.io/v1/xvshnpostgresqls/pg/status")
    tr -d '\r' < "$work/head" | sed -n 's/^[Ww]arning: 299 - "\(.*\)"$/Warning: \1/; T; s/\\"/"/g; p'
    if [[ $code == 200 ]]; then
        echo "xvshnpostgresql.vshn.appcat.vshn.io/pg patched"
    else
        # The first `message` is that of the Status.
        grep -oE '"message": ?"([^"\\]|\\.)*"' "$work/answer" | head -1 |
            sed 's/^"message": *"/Error from server (Invalid): /; s/"$//; s/\\"/"/g'
        return 1
    fi
}
declare -A status_of time_of
# Sets conditions like a controller: lastTransitionTime changes with the status.
patch_conditions() { # WHO TYPE=STATUS...
    local who=$1 list='' pair type status
    shift
    for pair in "$@"; do
        type=${pair%%=*} status=${pair##*=}
        [[ ${status_of[$type]-} == "$status" ]] || time_of[$type]=$(date -u +%FT%TZ)
        status_of[$type]=$status
        list+="${list:+,}{\"type\":\"$type\",\"status\":\"$status\",\"reason\":\"Demo\",\"lastTransitionTime\":\"${time_of[$type]}\"}"
    done
    patch_status "$who" "{\"status\":{$also\"conditions\":[$list]}}" "{\"status\":{$also\"conditions\":[$*]}}"
}
also=

say "An AppCat-like CRD, and an object that is older than statusgate"
show kubectl apply -f "$root/deploy/crds/appcat-example.yaml"
kubectl wait --for=condition=Established crd/xvshnpostgresqls.vshn.appcat.vshn.io > /dev/null
printf 'apiVersion: vshn.appcat.vshn.io/v1\nkind: XVSHNPostgreSQL\nmetadata: {name: pg}\nspec: {}\n' > "$work/pg.yaml"
for _ in {1..50}; do kubectl apply -f "$work/pg.yaml" 2> /dev/null && break; sleep 0.2; done
also='"instanceNamespace":"vshn-postgresql-pg",'
patch_conditions operator Ready=False Synced=True PodReady=False
also=
expect ''

say "Start statusgate and register it for the custom resources of the policy"
"$statusgate" certs --out "$work/certs" > /dev/null
"$statusgate" serve --listen 127.0.0.1:0 --probe-listen 127.0.0.1:0 --grace 0s --log-format json \
    --tls-cert "$work/certs/tls.crt" --tls-key "$work/certs/tls.key" 2> "$work/log" &
server=$!
for _ in {1..100}; do
    address=$(sed -n 's/.*"address":"\([^"]*\)".*/\1/p' "$work/log" | head -1)
    [[ -z $address ]] || break
    sleep 0.05
done
[[ -n $address ]] || { cat "$work/log" >&2 && exit 1; }
"$statusgate" manifests registrations --policies "$root/deploy/policies/appcat.yaml" --crds "$root/deploy/crds/appcat-example.yaml" \
    --url "https://$address" --ca-file "$work/certs/ca.crt" > "$work/webhooks.yaml" 2> "$work/gaps" || [[ $? -eq 1 ]]
show kubectl apply -f "$work/webhooks.yaml"

say "Default: the next status write gets the missing phase"
for _ in {1..50}; do
    # The API server needs a moment to see the registration.
    patch_status operator '{"status":{"currentVersion":"15"}}' > "$work/said"
    [[ -z $(kubectl get xvshnpostgresqls pg -o 'jsonpath={.status.phase}') ]] || break
    sleep 0.2
done
cat "$work/said"
expect Unknown

say "An unsupported phase is rejected"
rejected patch_status operator '{"status":{"phase":"ready"}}'
expect Unknown

say "A phase that disagrees with the conditions is rejected"
rejected patch_status operator '{"status":{"phase":"Ready"}}'
expect Unknown

say "Crossplane writes phase and conditions in two requests: statusgate repairs the first"
patch_status crossplane '{"status":{"phase":"Ready"}}'
expect Unknown
patch_conditions crossplane Ready=True Synced=True PodReady=True
patch_status crossplane '{"status":{"phase":"Ready"}}'
expect Ready

say "Pods fail: statusgate sets the phase"
patch_conditions crossplane Ready=True Synced=True PodReady=False
expect Degraded

say "Deletion with a finalizer: the phase is Deleting, not the one that the writer sends"
kubectl patch xvshnpostgresqls pg --type=merge -p '{"metadata":{"finalizers":["demo.statusgate.dev/wait"]}}' > /dev/null
show kubectl delete xvshnpostgresqls pg --wait=false
patch_conditions crossplane Ready=False Synced=True PodReady=False
expect Deleting
kubectl patch xvshnpostgresqls pg --type=merge -p '{"metadata":{"finalizers":null}}' > /dev/null
say "Done"
