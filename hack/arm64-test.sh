#!/usr/bin/env bash
# Tests the release for arm64 in an emulator. See --help.
set -euo pipefail

help() {
    cat <<'HELP'
usage: hack/arm64-test.sh [BINARY]

Runs BINARY (default: builds it with hack/release-build.sh) with qemu-aarch64: the version, the unit tests of policies, and a server with a
certificate of `statusgate certs`, which must deny docs/review.json over TLS and exit with 0 on SIGTERM.
The build needs the Rust target: `rustup target add aarch64-unknown-linux-gnu`.
HELP
}

say() { echo "arm64-test: $*" >&2; }

die() {
    say "$*"
    exit 1
}

case ${1-} in
-h | --help) help && exit ;;
esac
[[ $# -le 1 ]] || { help >&2 && exit 2; }
readonly rust_target=aarch64-unknown-linux-gnu
given=${1+$(realpath -- "$1")}
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

hack/packages.sh qemu-user curl jq
if [[ -n $given ]]; then
    binary=$given
else
    [[ -d $(rustc --print target-libdir --target $rust_target) ]] || die "no $rust_target; run \`rustup target add $rust_target\`"
    hack/packages.sh gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    binary=$(hack/release-build.sh $rust_target)
fi
readelf --file-header "$binary" | grep -q 'Machine:.*AArch64' || die "$binary is not for arm64"
statusgate() { qemu-aarch64 "$binary" "$@"; }

work=$(mktemp -d)
server=
# shellcheck disable=SC2317 # called by the trap
clean() {
    [[ -z $server ]] || kill -KILL "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT

version=$(statusgate --version)
[[ $version == "statusgate "* ]] || die "--version says: $version"
statusgate test examples/policy-tests

# A separate loopback address: other tests may use these ports on 127.0.0.1.
address=127.$((RANDOM % 200 + 10)).$((RANDOM % 254 + 1)).$((RANDOM % 254 + 1))
statusgate certs --out "$work/certs" >&2
qemu-aarch64 "$binary" serve --tls-cert "$work/certs/tls.crt" --tls-key "$work/certs/tls.key" \
    --listen "$address:18443" --probe-listen "$address:18080" --grace 0s --drain-timeout 5s </dev/null >"$work/serve.log" 2>&1 &
server=$!
for ((tries = 300; ; tries--)); do
    if curl --silent --fail --output /dev/null "http://$address:18080/readyz"; then break; fi
    kill -0 "$server" 2>/dev/null || { cat "$work/serve.log" >&2 && die "serve ended unexpectedly"; }
    [[ $tries -gt 0 ]] || { cat "$work/serve.log" >&2 && die "/readyz does not answer"; }
    sleep 0.1
done
curl --silent --show-error --fail --max-time 60 --cacert "$work/certs/ca.crt" --connect-to "localhost:8443:$address:18443" \
    --data @docs/review.json https://localhost:8443/validate >"$work/answer"
jq --exit-status '.response.allowed == false and .response.status.code == 422' "$work/answer" >/dev/null ||
    { cat "$work/answer" >&2 && die "the review is not denied"; }
kill -TERM "$server"
wait "$server" || { cat "$work/serve.log" >&2 && die "serve did not end with 0 on SIGTERM"; }
server=

say "ok: $version for arm64, $(stat --format %s "$binary" | numfmt --to=iec)B"
