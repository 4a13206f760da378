#!/usr/bin/env bash
# Lists the functions that a server executes in hack/hot-functions.txt: first those of a server with files, from its start to reviews, then
# those that only a server in a cluster executes. hack/release-build.sh puts them next to one another in this order.
#
#     hack/hot-functions.sh                  also as `make hot-functions`
#
# A function that is missing costs up to 64 KB of memory in a server that executes it, and a name that no longer exists costs nothing. So
# run this before a release, and when `bench/burst.sh` misses its target.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

if [[ -z ${CONTROL_PLANE-} ]]; then
    hack/packages.sh valgrind curl
    STATUSGATE=$(CARGO_PROFILE_RELEASE_STRIP=none hack/release-build.sh)
    export STATUSGATE
    exec hack/with-control-plane.sh "$0"
fi

# shellcheck source=bench/common.sh
. bench/common.sh
PORT=$(free_port) PROBES=$(free_port)

# profile NAME ARG...: starts a server in valgrind. SIGTERM writes the profile.
profile() {
    start "$1" valgrind --quiet --tool=callgrind --demangle=no --callgrind-out-file="$work/$1.profile" \
        "$STATUSGATE" serve --listen "127.0.0.1:$PORT" --probe-listen "127.0.0.1:$PROBES" --grace 0s "${@:2}" 2>"$work/$1.log"
    until ask "$PROBES" /readyz; do
        alive "$1"
        pause 0.2
    done
}

# Reviews of each size of the benchmarks, on up to 64 connections.
review() { # CA HOST
    local kilobytes webhook
    for kilobytes in 4 11 180; do
        awk -v bytes=$((kilobytes * 1024)) -f bench/review.awk >"$work/review.json"
        for webhook in validate mutate; do
            curl --no-progress-meter --fail --cacert "$1" --data-binary "@$work/review.json" --output /dev/null \
                --parallel --parallel-immediate --parallel-max 64 "https://$2:$PORT/$webhook?[1-64]"
        done
    done
    ask "$PROBES" /metrics
    # A client without TLS.
    ! curl --silent "http://$2:$PORT"
}

finish() { # NAME
    # The work of timers.
    pause 15
    kill -TERM "${children[$1]}"
    wait "${children[$1]}"
    unset "children[$1]"
}

"$STATUSGATE" certs --out "$work/certs" >/dev/null
profile files --tls-cert "$work/certs/tls.crt" --tls-key "$work/certs/tls.key"
review "$work/certs/ca.crt" localhost
finish files

"$STATUSGATE" manifests crds | kubectl apply -f - >/dev/null
kubectl apply -f deploy/crds/appcat-example.yaml >/dev/null
kubectl create namespace statusgate-system >/dev/null
kubectl wait --for=condition=Established crd/statuspolicies.statusgate.dev crd/xvshnpostgresqls.vshn.appcat.vshn.io >/dev/null
profile cluster --kubeconfig "$KUBECONFIG" --namespace statusgate-system --watch-policies --manage-certificates \
    --certificate-secret statusgate-tls --manage-webhooks --webhook-url "https://127.0.0.1:$PORT"
kubectl apply -f deploy/policies/appcat.yaml >/dev/null
kubectl wait --for=condition=Accepted --timeout=60s statuspolicies --all >/dev/null
kubectl get secret --namespace statusgate-system statusgate-tls -o jsonpath='{.data.ca\.crt}' | base64 --decode >"$work/ca.crt"
review "$work/ca.crt" 127.0.0.1
finish cluster

# `fn` is a function and `cfn` one that it calls; a name is written at its first use. 'N counts recursive calls.
names() { # PROFILE
    sed -n -E "s/^c?fn=\([0-9]+\) //p" "$work/$1.profile" | grep '^[A-Za-z_]' |
        sed -E "s/'[0-9]+$//; s/17h[0-9a-f]{16}E.*/17h*/; s/\.llvm\.[0-9]+$/.llvm.*/" | LC_ALL=C sort -u
}
{
    echo '# Written by hack/hot-functions.sh. A star stands for the hash in the name of a function.'
    names files
    names cluster
} | awk '!known[$0]++' >"$work/list" # the linker keeps this order, so a server with files does not need the functions for a cluster
grep -q statusgate_core "$work/list" || { echo 'hot-functions: the profiles have no names of functions' >&2 && exit 1; }
mv "$work/list" hack/hot-functions.txt
echo "hot-functions: ok, $(grep -vc '^#' hack/hot-functions.txt) functions"
