#!/usr/bin/env bash
# Tests the final stage of the Dockerfile with an existing binary. See --help.
#
# A test machine has no container registry, so the build stage (FROM rust) cannot run. buildah's --build-context replaces this stage
# with a folder, and the final stage is FROM scratch. So the test builds the same lines as the released image.
#
# buildah with --isolation chroot and the vfs driver needs no daemon, no container runtime and no overlay mounts, so it also works in a
# container. A chroot shares the host's network and /proc. The test starts the binary with only the files of the image, as its own
# user, and calls its probes. It cannot test readOnlyRootFilesystem and dropped capabilities.
set -euo pipefail

help() {
    cat <<'HELP'
usage: hack/image-test.sh [BINARY]

Builds the final stage of the Dockerfile with BINARY, offline, and checks the image: its configuration, its files, and that the binary
runs as user 65532. `--version` must work; `serve` must answer its probes and exit with 0 on SIGTERM.
The default BINARY is the newest of target/release/statusgate and target/debug/statusgate. If it is linked dynamically, as with
`cargo build`, its libraries are added to the image, in place of the static linking in the Dockerfile.
HELP
}

say() { echo "image-test: $*" >&2; }

die() {
    say "$*"
    exit 1
}

case ${1-} in
-h | --help) help && exit ;;
-*) help >&2 && exit 2 ;;
esac
[[ $# -le 1 ]] || { help >&2 && exit 2; }
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
if [[ $# -eq 1 ]]; then
    binary=$1
else
    binary=$target/release/statusgate
    [[ ! $target/debug/statusgate -nt $binary ]] || binary=$target/debug/statusgate
fi
[[ -f $binary && -x $binary ]] || { say "no executable file $binary; build it first" && exit 2; }
binary=$(realpath -- "$binary")
readonly binary root

type -P buildah >/dev/null || "$root/hack/packages.sh" buildah
# Mounting an image needs root, or root in a user namespace.
[[ $EUID -eq 0 ]] || exec buildah unshare "$root/hack/image-test.sh" "$binary"

work=$(mktemp -d)
readonly work
readonly image=localhost/statusgate-image-test

# A separate store, which is deleted at the end. `run` puts the container's root into TMPDIR.
mkdir "$work/tmp"
export TMPDIR=$work/tmp
buildah() {
    command buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"
}

# The processes with a program from the container's root file system.
inside() {
    local link exe
    for link in /proc/[0-9]*/exe; do
        exe=$(readlink "$link" 2>/dev/null) || continue
        [[ $exe != "$work"/* ]] || { link=${link%/exe} && echo "${link#/proc/}"; }
    done
}

# shellcheck disable=SC2317 # called by the trap
clean() {
    local status=$? pid
    # Kill the server, not buildah: buildah stops when the server ends, but a killed buildah leaves the server running.
    for pid in $(inside); do kill -KILL "$pid" 2>/dev/null || true; done
    wait
    buildah rm --all >/dev/null 2>&1 || true
    rm -rf --one-file-system "$work"
    exit "$status"
}

trap clean EXIT

# === the replacement of the stage `build` ===

rootfs=$work/build/rootfs
mkdir -p "$rootfs" "$work/empty"
install -m 0755 "$binary" "$rootfs/statusgate"
if ldd "$binary" >"$work/ldd" 2>&1 && grep -q '/' "$work/ldd"; then
    # `NAME => PATH (ADDRESS)` for a library, `PATH (ADDRESS)` for the loader. Copy each to the same path, following links: the loader
    # and the binary's interpreter entry use these paths.
    while read -r library; do
        install -D -m 0755 "$(realpath -- "$library")" "$rootfs$library"
    done < <(grep -o '/[^ ]*' "$work/ldd")
    say "$(basename -- "$binary") is linked dynamically; taking along: $(grep -o '/[^ ]*' "$work/ldd" | paste -sd ' ')"
fi

# The context is empty: the final stage may copy only from the build stage.
buildah build --quiet --isolation chroot --pull-never --target final --build-context "build=$work/build" \
    --build-arg VERSION=1.2.3 --build-arg REVISION=abcdef --tag "$image" --file "$root/Dockerfile" "$work/empty" >"$work/build.log" 2>&1 ||
    { cat "$work/build.log" >&2 && die "the final stage does not build"; }

# === the configuration ===

configured() {
    local what=$1 template=$2 expected=$3 actual
    actual=$(buildah inspect --type image --format "$template" "$image")
    [[ $actual == "$expected" ]] || die "the image's $what is $actual, not $expected"
}

configured user '{{.OCIv1.Config.User}}' 65532:65532
configured entrypoint '{{.OCIv1.Config.Entrypoint}}' '[/statusgate]'
configured command '{{.OCIv1.Config.Cmd}}' '[--help]'
configured ports '{{.OCIv1.Config.ExposedPorts}}' 'map[8080/tcp:{} 8443/tcp:{}]'
configured title '{{index .OCIv1.Config.Labels "org.opencontainers.image.title"}}' statusgate
configured version '{{index .OCIv1.Config.Labels "org.opencontainers.image.version"}}' 1.2.3
configured revision '{{index .OCIv1.Config.Labels "org.opencontainers.image.revision"}}' abcdef

# === the files: only those of the build stage, and no shell ===

container=$(buildah from --pull-never "$image")
# Before the first `run`, which adds mount points and /etc/hosts.
(cd "$(buildah mount "$container")" && find . -mindepth 1 -not -type d -printf '%P %M\n' | sort) >"$work/files"
(cd "$rootfs" && find . -mindepth 1 -not -type d -printf '%P %M\n' | sort) >"$work/expected"
diff -u "$work/expected" "$work/files" >&2 || die "the image's files are not those of the build stage"
if grep -E '(^|/)(ba|da|a|z|k)?sh |busybox' "$work/files" >&2; then die "there is a shell in the image"; fi

# === the binary, run from the image's root file system ===

run() {
    buildah run --isolation chroot "$@"
}

version=$(run "$container" -- /statusgate --version) || die "/statusgate --version does not run in the image"
[[ $version == "statusgate "* ]] || die "/statusgate --version says: $version"

# A separate loopback address: the chroot shares the host's network, and other tests may use these ports on 127.0.0.1.
address=127.$((RANDOM % 200 + 10)).$((RANDOM % 254 + 1)).$((RANDOM % 254 + 1))
readonly address

# Whether the probe port answers 200, without curl. In a subshell, so that a connection error does not end the script.
probe() (
    exec 3<>"/dev/tcp/$address/18080" || exit 1
    request=$(printf 'GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n.' "$1" "$address")
    # One write: bash sends line by line, and the server may answer and close after the first line.
    printf '%s' "${request%.}" | dd obs=4096 status=none >&3
    read -r -t 5 _ status _ <&3
    [[ $status == 200 ]]
)

# The policies as kubelet mounts a ConfigMap: files are symlinks into ..data, which is a symlink itself.
policies=$work/policies
mkdir -p "$policies/..2026_01_01"
cp "$root/deploy/policies/appcat.yaml" "$policies/..2026_01_01/"
ln -s ..2026_01_01 "$policies/..data"
ln -s ..data/appcat.yaml "$policies/appcat.yaml"
chmod -R a+rX "$policies"

run --volume "$policies:/etc/statusgate/policies:ro" "$container" -- /statusgate serve \
    --policies /etc/statusgate/policies --self-signed --listen "$address:18443" --probe-listen "$address:18080" \
    --grace 0s --drain-timeout 5s </dev/null >"$work/serve.log" 2>&1 &
server=$!

# A start takes milliseconds; the limit allows for buildah on a busy machine.
for ((tries = 100; ; tries--)); do
    if probe /readyz 2>/dev/null; then break; fi
    kill -0 "$server" 2>/dev/null || { cat "$work/serve.log" >&2 && die "serve ended unexpectedly"; }
    [[ $tries -gt 0 ]] || { cat "$work/serve.log" >&2 && die "/readyz does not answer"; }
    sleep 0.1
done
probe /livez || die "/livez does not answer"

mapfile -t pids < <(inside)
[[ ${#pids[@]} -eq 1 ]] || die "expected one process in the container, found: ${pids[*]-none}"
uids=$(awk '$1 == "Uid:" { print $2, $3, $4, $5 }' "/proc/${pids[0]}/status")
[[ $uids == "65532 65532 65532 65532" ]] || die "serve runs as $uids, not as 65532"

kill -TERM "${pids[0]}"
wait "$server" || { cat "$work/serve.log" >&2 && die "serve did not end with 0 on SIGTERM"; }

say "ok: $version, $(stat --format %s "$binary" | numfmt --to=iec)B, on scratch as 65532"
