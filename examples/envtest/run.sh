#!/usr/bin/env bash
# Judges the status writes of a controller on a real API server: hack/with-control-plane.sh examples/envtest/run.sh
#
# It needs KUBECONFIG, APISERVER_URL and APISERVER_CA of an API server for tests, kubectl, and target/debug/statusgate.
set -euo pipefail
: "${KUBECONFIG:?run this script with hack/with-control-plane.sh}" "${APISERVER_URL:?}" "${APISERVER_CA:?}"
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
PATH=$root/target/debug:$PATH
work=$(mktemp -d)
process=
clean() {
    [[ -z $process ]] || kill "$process" 2>/dev/null || true
    [[ -z $process ]] || wait "$process" || true
    rm -rf "$work"
}
trap clean EXIT
fail() { echo "envtest: $*" >&2 && exit 1; }

# The controller of this example: it writes a phase and its condition in one request.
controller() { # PHASE PROMOTED [WEIGHT]
    local now condition
    now=$(date -u +%FT%TZ)
    condition="{\"type\":\"Promoted\",\"status\":\"$2\",\"reason\":\"$1\",\"message\":\"An example.\",\"lastUpdateTime\":\"$now\",\"lastTransitionTime\":\"$now\"}"
    curl -sS --fail --cacert "$APISERVER_CA" -H 'Authorization: Bearer operator-token' -o /dev/null \
        -X PATCH -H 'Content-Type: application/merge-patch+json' \
        --data "{\"status\":{\"phase\":\"$1\",\"canaryWeight\":${3-0},\"lastTransitionTime\":\"$now\",\"conditions\":[$condition]}}" \
        "$APISERVER_URL/apis/flagger.app/v1beta1/namespaces/default/canaries/podinfo/status"
}

cd -- "$root/examples/write-a-convention"
kubectl apply -f crd.yaml >&2
kubectl wait --for=condition=Established crd/canaries.flagger.app >/dev/null
printf 'apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {name: podinfo, namespace: default}\n' >"$work/canary.yaml"
for _ in {1..50}; do
    if kubectl apply -f "$work/canary.yaml" &>/dev/null; then break; fi
    sleep 0.2
done

# === record: find what the controller does wrong, and reject nothing ===

statusgate record --policies policies --crds crd.yaml --to "$work/writes.jsonl" >"$work/report" 2>"$work/log" &
process=$!
# Until the API server calls the recorder, its writes are not recorded.
for weight in {1..100}; do
    controller Progressing Unknown "$weight"
    [[ ! -s $work/writes.jsonl ]] || break
    sleep 0.1
done
controller Promoting Unknown
controller Succeeded False # the mistake
kill -TERM "$process"
code=0
wait "$process" || code=$?
process=
cat "$work/log" "$work/report"
[[ $code -eq 1 ]] || fail "record ends with exit code $code, not with 1 for findings"
grep -q 'deny: Canary default/podinfo by .*: phase Succeeded disagrees: .* \[flagger/phase-promoted\]' "$work/report" ||
    fail "the report lacks the mistake of the controller"

# === serve: the API server rejects the write, and a test in Rust sees that ===

statusgate certs --out "$work/certs" >/dev/null
statusgate serve --listen 127.0.0.1:0 --probe-listen 127.0.0.1:0 --grace 0s --log-format json --policies policies \
    --tls-cert "$work/certs/tls.crt" --tls-key "$work/certs/tls.key" 2>"$work/log" &
process=$!
address=
for _ in {1..100}; do
    address=$(sed -n 's/.*"address":"\([^"]*\)".*/\1/p' "$work/log" | head -1)
    [[ -z $address ]] || break
    sleep 0.05
done
[[ -n $address ]] || fail "the server did not start: $(<"$work/log")"
statusgate manifests registrations --policies policies --crds crd.yaml --url "https://$address" --ca-file "$work/certs/ca.crt" |
    kubectl apply -f - >&2
"$root/target/debug/examples/kube_status_writes"
echo "envtest: ok"
