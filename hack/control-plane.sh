#!/usr/bin/env bash
# Runs a real Kubernetes API for the tests: only etcd and kube-apiserver, on loopback. See --help.
#
# The tests must pass on Debian 12 with only a Rust toolchain. kind, k3s and envtest need containers, privileges or other
# downloads. Debian ships etcd as a binary and Kubernetes 1.20.2 as source, the oldest API server that statusgate supports. To test
# newer ones, set KUBEBUILDER_ASSETS; every flag below exists from 1.20 to 1.36.
#
# The script unpacks Debian packages into the build folder and installs none: etcd-server would start a daemon,
# kubernetes-client conflicts with other packages of kubectl, and both would need root. The exceptions are openssl and, with
# KUBEBUILDER_ASSETS and without any kubectl, kubernetes-client.
# shellcheck disable=SC2317  # functions that only traps call look unreachable to it
set -euo pipefail

readonly VERSION=1.20.2
# A start takes 5 to 8 s on two idle cores. The limit allows for a concurrent cargo build.
readonly READY_LIMIT=60
# Seconds between SIGTERM and SIGKILL. kube-apiserver waits for its watchers; no data is worth waiting for.
readonly STOP_LIMIT=3

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly here

help() {
    cat <<'HELP'
usage: hack/control-plane.sh assets      print the folder that holds etcd, kube-apiserver and kubectl
       hack/control-plane.sh run DIR     run etcd and kube-apiserver in the foreground, all state in DIR
       hack/control-plane.sh --help

assets uses KUBEBUILDER_ASSETS if that has etcd and kube-apiserver (kubectl from there or from PATH). Otherwise it builds
Kubernetes 1.20.2 from Debian 12's source package, once, into ${XDG_CACHE_HOME:-~/.cache}/statusgate. This takes about 4 minutes
on two idle cores and 170 MB (2 GB during the build). Progress goes to stderr; the build log stays in that folder.

run needs a DIR that is empty or does not exist. When the API is ready, it creates
  DIR/kubeconfig                admin, of system:masters
  DIR/kubeconfig-crossplane     system:serviceaccount:syn-crossplane:crossplane     each with cluster-admin through RBAC,
  DIR/kubeconfig-operator       system:serviceaccount:apps:operator                 not through system:masters
  DIR/kubeconfig-billing        system:serviceaccount:billing:billing-controller
  DIR/kubeconfig-portal         portal, a plain user
  DIR/env                       KUBECONFIG, APISERVER_URL and APISERVER_CA, to be sourced
  DIR/etcd.pid, DIR/kube-apiserver.pid
  DIR/ready                     created last; contains how often the API became ready: 1
and prints one line, "ready URL". The bearer tokens are admin-token, crossplane-token and so on.

It stops both servers and ends on SIGTERM, SIGINT, SIGHUP or the end of its stdin (exit 0). A test holds the other end of a pipe,
so the servers stop however the test ends. If stdin is not a terminal, use `sleep infinity | hack/control-plane.sh run DIR`. It also
ends if a server exits or is not ready after 60 s (exit 1, with the ends of DIR/etcd.log and DIR/kube-apiserver.log on stderr).
SIGUSR1 restarts only kube-apiserver with the same port and etcd: DIR/ready is deleted and created with the next number.
SIGUSR2 deletes DIR/ready and stops kube-apiserver until the next SIGUSR1.
HELP
}

say() { echo "control-plane: $*" >&3; }

die() {
    say "$*"
    exit 1
}

# === assets ===

assets() {
    type -P openssl >/dev/null || "$here/packages.sh" openssl

    if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
        if [[ -x $KUBEBUILDER_ASSETS/etcd && -x $KUBEBUILDER_ASSETS/kube-apiserver ]]; then
            [[ -x $KUBEBUILDER_ASSETS/kubectl ]] || type -P kubectl >/dev/null || "$here/packages.sh" kubernetes-client
            echo "$KUBEBUILDER_ASSETS"
            return
        fi
        say "no etcd and kube-apiserver in KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS: using $VERSION"
    fi

    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/statusgate
    target=$cache/control-plane-$VERSION
    if ! complete; then
        mkdir -p "$target"
        # Every process of the build inherits the lock. If this script is killed, the next run waits for a running compiler.
        exec 9>"$target.lock"
        if ! flock --nonblock 9; then
            say "another run is building it; waiting"
            flock 9
        fi
        complete || build_missing
    fi
    echo "$target"
}

complete() { [[ -x $target/etcd && -x $target/kubectl && -x $target/kube-apiserver ]]; }

# Each binary is moved into the target when it is complete, so an interrupted build loses at most one.
build_missing() {
    local log=$target.log
    say "building Kubernetes $VERSION, about 4 minutes; log in $log"
    # Left by a killed run; the lock shows that it is unused.
    rm -rf "$target".build.*
    work=$(mktemp --directory "$target.build.XXXXXX")
    # A trap, because `||` at the call would disable `set -e` inside.
    # shellcheck disable=SC2064  # the log is known now and out of scope when the trap runs
    trap "end_build \$? $(printf %q "$log")" EXIT
    exec 4>&1 >"$log" 2>&1 </dev/null

    private_apt
    say "unpacking Debian packages"
    [[ -x $target/etcd ]] || place_etcd
    [[ -x $target/kubectl ]] || place_kubectl
    [[ -x $target/kube-apiserver ]] || place_kube_apiserver

    exec >&4 2>&3
    say "done in $SECONDS s"
}

end_build() {
    # Go and dpkg-deb create read-only folders.
    chmod -R u+w "$work" 2>/dev/null || true
    rm -rf "$work"
    if [[ $1 -ne 0 ]]; then
        tail -n 40 "$2" >&3
        say "the build failed; see $2"
    fi
}

# apt with separate lists: they include source packages, and need no root. Archives, keys and proxies are those of the machine.
private_apt() {
    say "fetching package lists"
    mkdir -p "$work"/apt/{sources.d,lists/partial,cache/archives/partial} "$work/root"
    local file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
        [[ -r $file ]] || continue
        sed -E 's/^Types:.*/Types: deb deb-src/I; s/^[[:space:]]*deb[[:space:]](.*)/&\ndeb-src \1/' "$file" \
            >"$work/apt/sources.d/${file##*/}"
    done
    # A third-party archive without sources fails the update. If Debian's archive failed, the downloads will fail too.
    apt_get update || true
}

apt_get() {
    # As root, apt downloads as the user _apt, which may have no access to this folder.
    apt-get --quiet \
        -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/sources.d" \
        -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

unpack() {
    (cd "$work/apt/cache/archives" && apt_get download "$@")
    local deb
    for deb in "$work"/apt/cache/archives/*.deb; do
        dpkg-deb --extract "$deb" "$work/root"
        rm "$deb"
    done
}

place_etcd() {
    unpack etcd-server
    mv "$work/root/usr/bin/etcd" "$target/etcd"
}

place_kubectl() {
    local found
    # A link, because some kubectl are shims that need their own folder. A dangling link is replaced later.
    if found=$(type -P kubectl); then
        ln -s "$found" "$work/kubectl"
        mv -T "$work/kubectl" "$target/kubectl"
    else
        unpack kubernetes-client
        mv -T "$work/root/usr/bin/kubectl" "$target/kubectl"
    fi
}

place_kube_apiserver() {
    unpack golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev golang-github-json-iterator-go-dev xz-utils
    # Ignore the user's Go settings: this build uses GOPATH and only the vendor folder.
    unset GOOS GOARCH GOBIN
    export GOROOT=$work/root/usr/lib/go-1.19 GOPATH=$work/go GOCACHE=$work/gocache
    export GO111MODULE=off CGO_ENABLED=0 GOENV=off GOFLAGS='' PATH="$work/root/usr/lib/go-1.19/bin:$work/root/usr/bin:$PATH"
    local tree=$GOPATH/src/k8s.io/kubernetes

    say "fetching the source"
    (cd "$work/apt/cache" && apt_get source --download-only kubernetes)
    local tarballs=("$work"/apt/cache/kubernetes_*"$VERSION".orig.tar.*)
    [[ -e ${tarballs[0]} ]] || die "the archive of this machine has no source of Kubernetes $VERSION, which is Debian 12's: set KUBEBUILDER_ASSETS"
    mkdir -p "$tree"
    tar --extract --file "${tarballs[0]}" --directory "$tree" --strip-components 1
    cd "$tree"

    # The vendored copies use internals of Go's maps and crash since Go 1.18. Debian's are newer, with the same API.
    local library
    for library in modern-go/reflect2 json-iterator/go; do
        rm -rf "vendor/github.com/$library"
        cp -RL "$work/root/usr/share/gocode/src/github.com/$library" "vendor/github.com/$library"
    done

    # The tarball lacks the generated OpenAPI definitions. The make rules need more tools, so run only the generator, for the
    # packages with its marker.
    say "generating its OpenAPI definitions"
    go build -o "$work/openapi-gen" k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen
    local modules packages
    modules=(api apimachinery apiextensions-apiserver kube-aggregator metrics component-base client-go cloud-provider
        kube-scheduler kubelet kube-proxy kube-controller-manager apiserver)
    packages=$(grep -rl '+k8s:openapi-gen=' --include='*.go' "${modules[@]/#/staging/src/k8s.io/}" pkg cmd \
        | grep -v zz_ | xargs dirname | sort -u \
        | sed 's#^staging/src/#k8s.io/kubernetes/vendor/#; s#^pkg/#k8s.io/kubernetes/pkg/#; s#^cmd/#k8s.io/kubernetes/cmd/#' \
        | paste -sd,)
    "$work/openapi-gen" --input-dirs "$packages" --output-package k8s.io/kubernetes/pkg/generated/openapi \
        --output-file-base zz_generated.openapi --go-header-file hack/boilerplate/boilerplate.generatego.txt \
        --report-filename /dev/null --output-base "$GOPATH/src"

    # Without a stamp, the server reports v0.0.0-master, and clients depend on the version. The linker silently ignores a wrong
    # package name. The log and GET /version use different packages, so both are set.
    say "compiling"
    local package stamps=()
    for package in component-base/version client-go/pkg/version; do
        package=k8s.io/kubernetes/vendor/k8s.io/$package
        stamps+=(-X "$package.gitVersion=v$VERSION" -X "$package.gitMajor=1" -X "$package.gitMinor=20")
    done
    go build -o "$work/kube-apiserver" -ldflags "-s -w ${stamps[*]}" k8s.io/kubernetes/cmd/kube-apiserver
    mv "$work/kube-apiserver" "$target/kube-apiserver"
}

# === run ===

# name, groups, user name. The token is NAME-token. Service accounts have the groups of real tokens, because webhooks receive them.
readonly USERS=(
    "admin      system:masters                                             admin"
    "crossplane system:serviceaccounts,system:serviceaccounts:syn-crossplane system:serviceaccount:syn-crossplane:crossplane"
    "operator   system:serviceaccounts,system:serviceaccounts:apps         system:serviceaccount:apps:operator"
    "billing    system:serviceaccounts,system:serviceaccounts:billing      system:serviceaccount:billing:billing-controller"
    "portal     -                                                          portal"
)

run() {
    umask 077
    mkdir -p -- "$1"
    dir=$(cd -- "$1" && pwd)
    [[ -z $(ls -A -- "$dir") ]] || die "$dir is not empty"

    declare -gA children=()
    builder='' restart='' halt='' fallen='' times_ready=0
    trap stop_all EXIT
    trap 'exit 0' TERM INT HUP
    # Delete the file in the trap: the sender of the signal checks it at once.
    trap 'restart=yes; rm -f "$dir/ready"' USR1
    trap 'halt=yes; rm -f "$dir/ready"' USR2

    find_assets
    openssl genrsa -out "$dir/service-account.key" 2048 2>/dev/null
    write_tokens
    start_both
    write_kubeconfigs
    bind_writers || give_up "no cluster-admin for the writers"
    publish_ready
    echo "ready $url"

    while :; do
        pause 0.5
        all_alive || give_up "the API is gone"
        [[ -z $halt ]] || stop kube-apiserver
        halt=''
        [[ -n $restart ]] || continue
        restart=''
        rm -f "$dir/ready"
        stop kube-apiserver
        start_apiserver
        if ! await_ready || ! bind_writers; then give_up "not back after the restart"; fi
        publish_ready
    done
}

# A read of stdin with a timeout is both a timer and a check that the other end is open. It needs no process, and unlike during a
# sleep, traps run at once.
pause() {
    local status=0
    read -r -t "$1" || status=$?
    # Above 128: timeout or signal.
    if ((status > 0 && status <= 128)); then exit 0; fi
}

# The build takes minutes and must stop at the end of stdin, so it runs in the background, in a separate process group with its
# compilers.
find_assets() {
    set -m
    "${BASH_SOURCE[0]}" assets </dev/null >"$dir/assets" &
    builder=$!
    set +m
    while kill -0 "$builder" 2>/dev/null; do pause 0.05; done
    wait "$builder" || exit 1
    builder=''
    bin=$(<"$dir/assets")
    kubectl=$bin/kubectl
    [[ -x $kubectl ]] || kubectl=$(type -P kubectl)
}

write_tokens() {
    local name groups user
    while read -r name groups user; do
        echo "$name-token,$user,$name,\"${groups#-}\""
    done < <(printf '%s\n' "${USERS[@]}") >"$dir/tokens.csv"
}

# === the two servers ===

start_both() {
    # Another process, usually this script, may take the port before the server binds it.
    for _ in 1 2 3 4 5; do
        etcd_port=$(free_port) port=$(free_port) url=https://127.0.0.1:$port
        start_etcd
        start_apiserver
        if await_ready; then return; fi
        grep -qs 'address already in use' "$dir"/{etcd,kube-apiserver}.log || give_up "not ready"
        stop etcd kube-apiserver
        rm -rf "$dir"/{etcd,etcd.log,kube-apiserver.log}
    done
    die "the chosen port was taken five times in a row"
}

# Below 30000: the kernel uses higher ports for outgoing connections, and kube-apiserver needs the same port after a restart.
free_port() {
    local candidate
    while :; do
        candidate=$((SRANDOM % 10000 + 20000))
        grep -qsi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$candidate") " /proc/net/tcp /proc/net/tcp6 || break
    done
    echo "$candidate"
}

# setpriv: the kernel kills the children if this script gets SIGKILL, which no trap can handle.
start() {
    local name=$1
    shift
    setpriv --pdeathsig KILL -- "$bin/$name" "$@" </dev/null >>"$dir/$name.log" 2>&1 9>&- &
    children[$name]=$!
    echo $! >"$dir/$name.pid"
}

# Without fsync: the data need not survive a power failure, and every write would wait for the disk.
start_etcd() {
    start etcd --data-dir "$dir/etcd" --unsafe-no-fsync \
        --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
        --listen-peer-urls http://127.0.0.1:0
}

start_apiserver() {
    since=$SECONDS
    # etcd-prefix: protects the data of another run if its etcd has this port.
    # advertise-address, endpoint-reconciler-type: without them the server needs a network interface other than loopback.
    start kube-apiserver \
        --etcd-servers "http://127.0.0.1:$etcd_port" --etcd-prefix "/registry-$port" \
        --bind-address 127.0.0.1 --secure-port "$port" --cert-dir "$dir/certs" \
        --advertise-address 127.0.0.1 --endpoint-reconciler-type none --service-cluster-ip-range 10.0.0.0/24 \
        --token-auth-file "$dir/tokens.csv" --authorization-mode RBAC --disable-admission-plugins ServiceAccount \
        --service-account-issuer https://kubernetes.default.svc \
        --service-account-key-file "$dir/service-account.key" \
        --service-account-signing-key-file "$dir/service-account.key"
}

all_alive() {
    # One by one: with several processes, kill succeeds if one exists.
    for fallen in "${!children[@]}"; do kill -0 "${children[$fallen]}" 2>/dev/null || return; done
    fallen=''
}

# Fails when a server ends or at the time limit. Ignores the certificate, which may not exist yet.
await_ready() {
    until probe --kubeconfig /dev/null --server "$url" --token admin-token --insecure-skip-tls-verify get --raw /readyz; do
        in_time || return
    done
}

in_time() {
    pause 0.2
    all_alive && ((SECONDS - since < READY_LIMIT))
}

probe() { "$kubectl" --cache-dir "$dir/kubectl" --request-timeout 2s "$@" </dev/null >/dev/null 2>>"$dir/kubectl.log"; }

stop() {
    local name pids=()
    for name in "$@"; do
        [[ -n ${children[$name]:-} ]] || continue
        pids+=("${children[$name]}")
        unset "children[$name]"
    done
    [[ ${#pids[@]} -eq 0 ]] || end "${pids[@]}"
}

# A negative one is a process group.
end() {
    local deadline=$((SECONDS + STOP_LIMIT))
    kill -TERM -- "$@" 2>/dev/null || true
    # Here one process is enough. `pause` would not wait, because stdin may be closed.
    while kill -0 -- "$@" 2>/dev/null && ((SECONDS < deadline)); do sleep 0.1; done
    kill -KILL -- "$@" 2>/dev/null || true
    wait "${@#-}" 2>/dev/null || true
}

stop_all() {
    trap '' TERM INT HUP USR1 USR2
    rm -f "$dir/ready"
    # Removing the tree may take too long; the next build removes it.
    [[ -z $builder ]] || end "-$builder"
    stop etcd kube-apiserver
}

give_up() {
    local name
    for name in etcd kube-apiserver; do
        echo "=== the end of $dir/$name.log" >&3
        tail -n 30 "$dir/$name.log" >&3 || true
    done
    die "$1${fallen:+: $fallen has ended}, $((SECONDS - since)) s after the start"
}

# === what the tests find in DIR ===

write_kubeconfigs() {
    # The file has the server's certificate and then its CA. Keep only the CA: some TLS libraries reject a server certificate as
    # trust anchor.
    awk '/BEGIN CERTIFICATE/ { pem = "" } { pem = pem $0 "\n" } END { printf "%s", pem }' "$dir/certs/apiserver.crt" >"$dir/ca.crt"
    local name rest
    while read -r name rest; do
        kubeconfig "$name" >"$dir/kubeconfig-$name"
    done < <(printf '%s\n' "${USERS[@]}")
    mv "$dir/kubeconfig-admin" "$dir/kubeconfig"
    printf '%s=%q\n' KUBECONFIG "$dir/kubeconfig" APISERVER_URL "$url" APISERVER_CA "$dir/ca.crt" >"$dir/env"
}

kubeconfig() {
    cat <<YAML
apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster:
    server: $url
    certificate-authority-data: $(base64 -w0 "$dir/ca.crt")
users:
- name: $1
  user:
    token: $1-token
contexts:
- name: test
  context:
    cluster: test
    user: $1
YAML
}

# RBAC instead of the group system:masters: webhooks that check groups must not treat these users as administrators. It checks the
# access first and then binds, so it works whichever of role, binding and authorizer is late, and needs one call after a restart.
bind_writers() {
    local name groups user users=()
    while read -r name groups user; do
        [[ $name == admin ]] || users+=(--user "$user")
    done < <(printf '%s\n' "${USERS[@]}")
    until probe --kubeconfig "$dir/kubeconfig-portal" get --raw /api/v1/namespaces; do
        probe --kubeconfig "$dir/kubeconfig" create clusterrolebinding test-writers --clusterrole cluster-admin "${users[@]}" || true
        in_time || return
    done
}

publish_ready() {
    times_ready=$((times_ready + 1))
    echo "$times_ready" >"$dir/ready.new"
    mv "$dir/ready.new" "$dir/ready"
}

# === main ===

main() {
    case ${1:-} in
        assets)
            [[ $# -eq 1 ]] || die "assets takes no argument"
            assets
            ;;
        run)
            [[ $# -eq 2 ]] || die "run takes one folder"
            run "$2"
            ;;
        -h | --help) help ;;
        *)
            help >&2
            exit 2
            ;;
    esac
    # Exit here: bash reads a script while it runs, and this file may be edited meanwhile.
    exit
}

# Messages go to 3, because the build redirects stderr to its log.
exec 3>&2
main "$@"
