# shellcheck shell=bash
# Shared by the benchmarks; sourced. `children` has every started process, and all files are in $work. Both are cleaned up when the
# script ends.
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # for the scripts
bench=$root/bench
work=$(mktemp -d)
declare -A children=()

# Nothing is written here: a read with a timeout is a sleep without a process.
exec {never}<> <(:)
pause() { read -r -t "$1" -u "$never" || true; }

clean() {
    trap '' INT TERM HUP
    stop "${!children[@]}"
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

die() {
    echo "bench: $*" >&2
    exit 1
}

# start NAME COMMAND...: runs in the background. setpriv kills the child if this script gets SIGKILL.
start() {
    local name=$1
    shift
    setpriv --pdeathsig KILL -- "$@" </dev/null &
    children[$name]=$!
}

stop() {
    local name pid until=$((SECONDS + 6))
    for name in "$@"; do kill -TERM "${children[$name]}" 2>/dev/null || true; done
    for name in "$@"; do
        pid=${children[$name]}
        unset "children[$name]"
        while kill -0 "$pid" 2>/dev/null && ((SECONDS < until)); do pause 0.02; done
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

# run NAME COMMAND...: runs to the end, in the background, because bash handles no signal during a foreground command.
run() {
    start "$@"
    local status=0
    wait "${children[$1]}" || status=$?
    unset "children[$1]"
    return "$status"
}

# The ports of a server must be known before it starts: the null server does not print them. Below 30000, because the kernel uses
# higher ports for outgoing connections.
free_port() {
    local candidate
    while :; do
        candidate=$((SRANDOM % 10000 + 20000))
        grep -qsi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$candidate") " /proc/net/tcp /proc/net/tcp6 || break
    done
    echo "$candidate"
}

# Whether a path of a probe port answers 200; $said is the body.
ask() { # PORT PATH
    local connection line=''
    said=''
    { exec {connection}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$2" >&"$connection"
    read -r -t 2 line <&"$connection" || true
    while IFS= read -r -t 2 -u "$connection"; do said+=$REPLY$'\n'; done
    exec {connection}>&-
    [[ $line == 'HTTP/1.1 200'* ]]
}

# The sum of matching counters: counter PORT REGULAR_EXPRESSION
counter() {
    ask "$1" /metrics || die "no metrics on port $1"
    awk -v what="^$2" '$0 ~ what { sum += $NF } END { printf "%d", sum }' <<<"$said"
}

# Checks that every request was allowed and got nothing else. The server may still answer requests after the load has ended.
all_allowed() { # SERVER REQUESTS DECISIONS, both as patterns of a metric
    local all good _
    for _ in {1..50}; do
        all=$(counter "${probe[$1]}" "$2")
        good=$(counter "${probe[$1]}" "$3")
        [[ $all != "$good" || $all -eq 0 ]] || return 0
        sleep 0.1
    done
    die "of $all requests to $1, $good were allowed without a word"
}

# compile NAME: builds statusgate or a program of examples/ as a release is built, and prints its path. BUILT is the folder of another
# build; then nothing is compiled.
compile() {
    local example=${1#statusgate}
    if [[ -n ${BUILT-} ]]; then
        echo "$BUILT/${example:+examples/}$1"
    else
        "$root/hack/release-build.sh" ${example:+--example "$example"}
    fi
}

build() {
    statusgate=$(compile statusgate)
    "$root/hack/packages.sh" wrk curl
    "$statusgate" certs --out "$work/certs" >/dev/null
}

# start_server null | NAME [BINARY]: starts the null server, or statusgate with the policies of $policies or the examples, with $flags and
# in $wrapper. Sets ${port[NAME]} and ${probe[NAME]}.
declare -A port=() probe=()
flags=() wrapper=()
start_server() {
    local name=$1 binary=${2:-$statusgate} command
    port[$name]=$(free_port) probe[$name]=$(free_port)
    case $name in
        null) command=("$null_server") ;;
        *) command=("${wrapper[@]}" "$binary" serve --grace 0s --log-format json ${policies:+--policies "$policies"} "${flags[@]}") ;;
    esac
    start "$name" "${command[@]}" --listen "127.0.0.1:${port[$name]}" --probe-listen "127.0.0.1:${probe[$name]}" \
        --tls-cert "$work/certs/tls.crt" --tls-key "$work/certs/tls.key" 2>"$work/$name.log"
    local until=$((SECONDS + 10))
    until ask "${probe[$name]}" /readyz; do
        alive "$name"
        ((SECONDS < until)) || die "$name is not ready after 10 s"
        pause 0.01
    done
}

# cpu_of PID: the CPU time of all threads in nanoseconds. /proc/PID/stat has only hundredths of a second, a third of a percent of a round.
cpu_of() { cat "/proc/$1/task/"*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

url() { echo "https://127.0.0.1:${port[$1]}/$2"; }

# The number of concurrent connections.
readonly CONNECTIONS=64

# drive_webhook SERVER WEBHOOK REVIEW SECONDS [PAUSE]: sets $line to requests/s, CPU µs per request, p50 and p99 in µs. A command substitution
# would delay signals.
drive_webhook() {
    local before after requests taken p50 p99 failed
    before=$(cpu_of "${children[$1]}")
    # One thread, to leave the other cores to the server.
    run wrk wrk --threads 1 --connections "$CONNECTIONS" --duration "${4}s" --timeout 10s -s "$bench/wrk.lua" \
        "$(url "$1" "$2")" -- review "$3" "${5:-0}" >"$work/wrk" || die "wrk failed: $(<"$work/wrk")"
    alive "$1"
    after=$(cpu_of "${children[$1]}")
    read -r _ requests taken p50 p99 failed < <(grep '^result ' "$work/wrk") || die "wrk said nothing: $(<"$work/wrk")"
    ((requests > 0)) || die "$1 answered nothing on /$2"
    ((failed == 0)) || die "$failed of $requests requests to /$2 of $1 failed: $(<"$work/wrk")"
    line=$(awk -v r="$requests" -v s="$taken" -v ns="$((after - before))" -v p50="$p50" -v p99="$p99" \
        'BEGIN { printf "%.1f %.3f %d %d\n", r / s, ns / r / 1000, p50, p99 }')
}

alive() {
    kill -0 "${children[$1]}" 2>/dev/null || {
        cat "$work/$1.log" >&2
        die "$1 has ended"
    }
}

# Functions for tables: mawk, Debian's awk, cannot sort.
# shellcheck disable=SC2034
readonly MEDIAN='
    function median(values, count,    i, j, value) {
        for (i = 2; i <= count; i++) {
            value = values[i]
            for (j = i - 1; j > 0 && values[j] > value; j--) values[j + 1] = values[j]
            values[j + 1] = value
        }
        return count % 2 ? values[(count + 1) / 2] : (values[count / 2] + values[count / 2 + 1]) / 2
    }'

# number OPTION VALUE: prints a positive number, or fails.
number() {
    [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || {
        echo "$1 needs a number from 1 to 9999" >&2
        exit 2
    }
    echo "$2"
}

# seconds_and_rounds ARGUMENT...: reads --seconds and --rounds into $seconds and $rounds. The script has their defaults and `usage`.
seconds_and_rounds() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --seconds) seconds=$(number "$1" "${2-}") ;;
            --rounds) rounds=$(number "$1" "${2-}") ;;
            -h | --help) usage && exit ;;
            *) usage >&2 && exit 2 ;;
        esac
        shift 2
    done
}
