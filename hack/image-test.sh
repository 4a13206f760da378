#!/usr/bin/env bash
# Tests the Dockerfile's final stage on a binary that is already built. See --help.
#
# There is no container registry on a test machine, so the build stage (FROM rust) cannot run there. It does not have to: buildah's
# --build-context, like docker's, takes a folder in place of a stage, and the final stage is FROM scratch. So the very lines
# that make the released image are built here, and only where their one file comes from differs.
#
# buildah with --isolation chroot and the vfs driver needs neither a daemon nor a container runtime nor overlay mounts, so this works
# inside a container, too. A chroot shares the host's network and its /proc: enough to see the binary start from nothing but its
# own files, as its own user, and to ask its probes. What a chroot cannot show (readOnlyRootFilesystem, dropped capabilities)
# is for a cluster.
set -euo pipefail

help() {
    cat <<'HELP'
usage: hack/image-test.sh [BINARY]

Builds the Dockerfile's final stage around BINARY, offline, and checks the image: its configuration, its files, and that the binary
runs in it as user 65532: `--version`, and `serve`, whose probes must answer and which must end with 0 on SIGTERM.
Without BINARY it is the newest of target/release/statusgate and target/debug/statusgate.
BINARY may be linked dynamically, as `cargo build` does it: its libraries then go into the image, as a stand-in for the static
linking of the Dockerfile's build stage.
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
# Mounting an image needs the rights of root, at least over a user namespace of one's own.
[[ $EUID -eq 0 ]] || exec buildah unshare "$root/hack/image-test.sh" "$binary"

work=$(mktemp -d)
readonly work
readonly image=localhost/statusgate-image-test

# A store of its own: nobody's images get in the way, and it goes away as a whole. TMPDIR is where `run` puts a container's root.
mkdir "$work/tmp"
export TMPDIR=$work/tmp
buildah() {
    command buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"
}

# The processes that run a program from within the container's root file system.
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
    # The server, not buildah: buildah takes its container down when the server ends, but leaves it running when killed itself.
    for pid in $(inside); do kill -KILL "$pid" 2>/dev/null || true; done
    wait
    buildah rm --all >/dev/null 2>&1 || true
    rm -rf --one-file-system "$work"
    exit "$status"
}

trap clean EXIT

# === the stage that stands in for `build` ===

rootfs=$work/build/rootfs
mkdir -p "$rootfs" "$work/empty"
install -m 0755 "$binary" "$rootfs/statusgate"
if ldd "$binary" >"$work/ldd" 2>&1 && grep -q '/' "$work/ldd"; then
    # `NAME => PATH (ADDRESS)` for a library, `PATH (ADDRESS)` for the loader. Copied to the very path, links followed, since that
    # is where the loader's built-in search list and the binary's interpreter entry look.
    while read -r library; do
        install -D -m 0755 "$(realpath -- "$library")" "$rootfs$library"
    done < <(grep -o '/[^ ]*' "$work/ldd")
    say "$(basename -- "$binary") is linked dynamically; taking along: $(grep -o '/[^ ]*' "$work/ldd" | paste -sd ' ')"
fi

# The context proper is empty: the final stage may copy from the build stage only, and anything else would fail here.
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

# === the files: those of the build stage and no others, so no shell either ===

container=$(buildah from --pull-never "$image")
# Looked at before the first `run`, which adds mount points and an /etc/hosts.
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

# An address of its own on the loopback network, because the chroot shares the host's: other tests may have these ports on 127.0.0.1.
address=127.$((RANDOM % 200 + 10)).$((RANDOM % 254 + 1)).$((RANDOM % 254 + 1))
readonly address

# Whether the probe port answers 200; with bash alone, as curl is not everywhere. In a subshell, so that a connection that is
# refused or reset ends no more than that.
probe() (
    exec 3<>"/dev/tcp/$address/18080" || exit 1
    request=$(printf 'GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n.' "$1" "$address")
    # One write: bash would send line by line, and a peer may answer and close after the first.
    printf '%s' "${request%.}" | dd obs=4096 status=none >&3
    read -r -t 5 _ status _ <&3
    [[ $status == 200 ]]
)

# The policies as kubelet mounts a ConfigMap: a file is a symlink into ..data, and that one is a symlink again, to be swapped.
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

# Starting is a matter of milliseconds; the limit is for buildah on a machine that is busy compiling.
for ((tries = 100; ; tries--)); do
    if probe /readyz 2>/dev/null; then break; fi
    kill -0 "$server" 2>/dev/null || { cat "$work/serve.log" >&2 && die "serve ended by itself"; }
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
