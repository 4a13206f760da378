# shellcheck shell=bash
# What run.sh and e2e.sh share; sourced. Everything that is started is in `children`, everything written is in $work, and both
# are gone when the script ends, however it ends.
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # for the scripts
bench=$root/bench
# CARGO_TARGET_DIR is cargo's own; a relative one is meant from where cargo runs.
target=$(cd -- "$root" && realpath -m -- "${CARGO_TARGET_DIR:-target}")/release
statusgate=$target/statusgate
null_server=$target/examples/null_server
work=$(mktemp -d)
declare -A children=()

# Nobody writes here: a read with a time-out is a sleep without a process.
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

# start NAME COMMAND...: in the background. setpriv is for the one end that no trap sees, a SIGKILL of this script.
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

# run NAME COMMAND...: to its end. Not in the foreground, because bash would hear no signal before it is over.
run() {
    start "$@"
    local status=0
    wait "${children[$1]}" || status=$?
    unset "children[$1]"
    return "$status"
}

# Both ports of a server have to be known before it starts, and the null server tells nobody which it was given. Below 30000,
# for the kernel hands out the higher ones to anybody who connects somewhere.
free_port() {
    local candidate
    while :; do
        candidate=$((SRANDOM % 10000 + 20000))
        grep -qsi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$candidate") " /proc/net/tcp /proc/net/tcp6 || break
    done
    echo "$candidate"
}

# Whether a path of a probe port says 200; what it says is then in $said.
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

# The sum of what a metric counts: counter PORT REGULAR_EXPRESSION
counter() {
    ask "$1" /metrics || die "no metrics on port $1"
    awk -v what="^$2" '$0 ~ what { sum += $NF } END { printf "%d", sum }' <<<"$said"
}

build() {
    # The ratios are those of the profile that ships; nothing else is worth the wait.
    (cd "$root" && cargo build --release --bin statusgate --example null_server)
    "$root/hack/packages.sh" wrk curl
    "$statusgate" certs --out "$work/certs" >/dev/null
}

# start_server null, or NAME [BINARY]: statusgate, with the policies of $policies, or the examples; leaves its ports in ${port[NAME]} and
# ${probe[NAME]}.
declare -A port=() probe=()
start_server() {
    local name=$1 binary=${2:-$statusgate} command
    port[$name]=$(free_port) probe[$name]=$(free_port)
    case $name in
        null) command=("$null_server") ;;
        *) command=("$binary" serve --grace 0s --log-format json ${policies:+--policies "$policies"}) ;;
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

# Nanoseconds on a CPU, of all threads: /proc/PID/stat counts in hundredths of a second, a third of a per cent of a round.
cpu_of() { cat "/proc/${children[$1]}/task/"*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

url() { echo "https://127.0.0.1:${port[$1]}/$2"; }

# For how many at once a webhook is measured.
readonly CONNECTIONS=64

# drive_webhook SERVER WEBHOOK REVIEW SECONDS: requests/s, CPU µs a request, p50 and p99 in µs, in $line. Not on stdout: in a command
# substitution nobody would hear a signal.
drive_webhook() {
    local before after requests taken p50 p99 failed
    before=$(cpu_of "$1")
    # One thread: the rest of the machine is for the server.
    run wrk wrk --threads 1 --connections "$CONNECTIONS" --duration "${4}s" --timeout 10s -s "$bench/wrk.lua" \
        "$(url "$1" "$2")" -- review "$3" >"$work/wrk" || die "wrk failed: $(<"$work/wrk")"
    alive "$1"
    after=$(cpu_of "$1")
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

# For the functions that every table needs: mawk, which is what Debian has, cannot sort.
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

# number OPTION VALUE: a positive number, or usage.
number() {
    [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || {
        echo "$1 takes a number from 1 to 9999" >&2
        exit 2
    }
    echo "$2"
}
