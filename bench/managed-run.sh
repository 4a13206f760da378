#!/usr/bin/env bash
# The part of bench/managed.sh that runs with a control plane.
set -euo pipefail
work=$(mktemp -d)
pids=()
clean() {
    ((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2> /dev/null || true
    rm -rf "$work"
}
trap clean EXIT

"$STATUSGATE" manifests crds | kubectl apply -f - > /dev/null
kubectl apply -f deploy/crds/appcat-example.yaml > /dev/null
kubectl create namespace statusgate-system > /dev/null
kubectl wait --for=condition=Established crd/statuspolicies.statusgate.dev crd/xvshnpostgresqls.vshn.appcat.vshn.io > /dev/null

# Two replicas on one port, as behind a Service.
start() {
    "$STATUSGATE" serve --listen 127.0.0.1:18443 --probe-listen "127.0.0.1:$1" --reuse-port --log warn \
        --kubeconfig "$KUBECONFIG" --namespace statusgate-system --watch-policies --manage-certificates \
        --certificate-secret statusgate-tls --manage-webhooks --webhook-url https://127.0.0.1:18443 2> "$work/$1.log" &
    pids+=($!)
    until curl --silent --fail "http://127.0.0.1:$1/readyz" > /dev/null; do sleep 0.05; done
}
start 18081
start 18082

seconds() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(seconds)" 'BEGIN { printf "%.1f s", b - a }'; }
used() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
report() {
    local what=$1 before after pid
    sleep 5
    for pid in "${pids[@]}"; do
        before=$(used "$pid")
        sleep "$SECONDS_IDLE"
        after=$(used "$pid")
        printf '%-16s %6.1f MB resident, %4.2f %% of a core when idle\n' "$what" \
            "$(awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$pid/status")" \
            "$(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" -v s="$SECONDS_IDLE" 'BEGIN { print t * 100 / hz / s }')"
    done
}

report "no policy"
for ((i = 0; i < COUNT; i++)); do
    cat << YAML
---
apiVersion: statusgate.dev/v1alpha1
kind: StatusPolicy
metadata: {name: policy-$i}
spec:
  convention: appcat
  resources:
    - {apiGroups: [vshn.appcat.vshn.io], apiVersions: [v1], resources: [$( ((i == 0)) && echo xvshnpostgresqls || echo "kind-$i")]}
YAML
done > "$work/policies.yaml"
begin=$(seconds)
kubectl create -f "$work/policies.yaml" > /dev/null
echo "$COUNT policies: created in $(since "$begin")"
begin=$(seconds)
accepted() { kubectl get statuspolicies -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Accepted")].status}{"\n"}{end}' | grep -c True || true; }
until (($(accepted) == COUNT)); do sleep 0.2; done
echo "$COUNT policies: all accepted $(since "$begin") later"
report "$COUNT policies"
kill -TERM "${pids[@]}"
wait "${pids[@]}"
pids=()
start 18081
start 18082
report "restarted"
grep -h . "$work"/*.log | head -5 || true
