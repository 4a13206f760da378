#!/usr/bin/env bash
# What a review costs: statusgate beside a null server, which is the same listener, TLS and HTTP with nothing to decide.
#
#     bench/run.sh [--seconds N] [--rounds N] [--size KB]...          also as `make bench`
#
# Machines differ and are never quiet, so no figure means much alone. Both servers are driven in turn, in short rounds, and every
# ratio is the median of the ratios of neighbouring rounds: what slows the machine for longer than a round slows both.
# A target that is missed is printed and no failure; an answer that is wrong is one.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/run.sh [--seconds N] [--rounds N] [--size KB]...
  --seconds N   how long a round is for each server (2)
  --rounds N    how many rounds a case has (5)
  --size KB     size of the reviews; may be repeated (4, 11 and 180)
USAGE
}

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

seconds=2 rounds=5 sizes=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --seconds) seconds=$(number "$1" "${2-}") ;;
        --rounds) rounds=$(number "$1" "${2-}") ;;
        --size) sizes+=("$(number "$1" "${2-}")") ;;
        -h | --help) usage && exit ;;
        *) usage >&2 && exit 2 ;;
    esac
    shift 2
done
[[ ${#sizes[@]} -gt 0 ]] || sizes=(4 11 180)
readonly CONNECTIONS=64 STARTS=15

# Nanoseconds on a CPU, of all threads: /proc/PID/stat counts in hundredths of a second, a third of a per cent of a round.
cpu_of() { cat "/proc/${children[$1]}/task/"*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

peak_memory_of() { awk '$1 == "VmHWM:" { printf "%d", $2 }' "/proc/${children[$1]}/status"; }

url() { echo "https://127.0.0.1:${port[$1]}/$2"; }

# What is about to be measured has to be the answer to an unobjectionable write, whole and nothing else.
check_answer() { # SERVER WEBHOOK REVIEW
    local answer expected
    answer=$(curl -sS --fail-with-body --max-time 10 --cacert "$work/certs/ca.crt" -H 'Content-Type: application/json' \
        --data-binary "@$3" "$(url "$1" "$2")") || die "$1 does not answer /$2: $answer"
    expected='{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-41e8-b7cc-42010a800002","allowed":true}}'
    [[ $answer == "$expected" ]] || die "$1 should allow /$2 and say nothing more, but says: $answer"
}

# drive SERVER WEBHOOK REVIEW SECONDS: requests/s, CPU µs a request, p50 and p99 in µs, in $line. Not on stdout: in a command
# substitution nobody would hear a signal.
drive() {
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

# Every answer while it was driven: 200, and allowed.
check_counters() { # WEBHOOK
    local all good
    all=$(counter "${probe[statusgate]}" "statusgate_requests_total{.*webhook=\"$1\"")
    good=$(counter "${probe[statusgate]}" "statusgate_decisions_total{.*webhook=\"$1\",decision=\"allowed\"")
    [[ $all == "$good" && $all -gt 0 ]] || die "of $all requests to /$1, $good were allowed without a word"
}

measure() { # WEBHOOK KB
    local webhook=$1 kb=$2 review=$work/review-$2.json server round
    # Servers of their own for every case, so that the memory is what this case needs.
    for server in statusgate null; do
        start_server "$server"
        check_answer "$server" "$webhook" "$review"
        drive "$server" "$webhook" "$review" 1
    done
    for ((round = 1; round <= rounds; round++)); do
        for server in statusgate null; do
            drive "$server" "$webhook" "$review" "$seconds"
            echo "$webhook $kb $server $round $line" >>"$work/rounds"
        done
    done
    for server in statusgate null; do
        echo "$webhook $kb $server memory $(peak_memory_of "$server")" >>"$work/rounds"
        check_answer "$server" "$webhook" "$review"
    done
    check_counters "$webhook"
    stop statusgate null
}

# shellcheck disable=SC2016  # awk's
readonly TABLE='
    $4 == "memory" { memory[$3] = $5 / 1024; next }
    { n[$3]++; for (i = 5; i <= 8; i++) value[$3, i, n[$3]] = $i }
    function of(server, column,    i, list) {
        for (i = 1; i <= n[server]; i++) list[i] = value[server, column, i]
        return median(list, n[server])
    }
    function ratio(column,    i, list) {
        for (i = 1; i <= n["null"]; i++) list[i] = value["statusgate", column, i] / value["null", column, i]
        return median(list, n["null"])
    }
    function row(title, server) {
        printf "%-18s %-11s %10.0f %9.1f %8d %8d %9.1f\n", title, server, of(server, 5), of(server, 6), of(server, 7), of(server, 8), memory[server]
    }
    END {
        row("/" webhook ", " kb " KB", "statusgate")
        row("", "null")
        printf "%-18s %-11s %10.2f %9.2f %8.2f %8.2f %9.2f\n", "", "ratio", ratio(5), ratio(6), ratio(7), ratio(8), memory["statusgate"] / memory["null"]
        if (kb == 11) {
            print "CPU of a /" webhook " of 11 KB|" sprintf("%.2f", ratio(6)) "|2.5|times the null server" >targets
            print "p99 of a /" webhook " of 11 KB|" sprintf("%.2f", ratio(8)) "|2|times the null server" >targets
            print "memory, " webhook " of 11 KB, " connections " connections|" sprintf("%.1f", memory["statusgate"]) "|20|MB" >targets
        }
    }'

# Milliseconds from before the fork to the first 200. The loop costs 30 µs a turn and sleeps 300 in between, so as not to take the
# CPU from what it waits for.
measure_start() {
    local i from to probe_port until
    for ((i = 0; i < STARTS; i++)); do
        probe_port=$(free_port)
        until=$((SECONDS + 10))
        from=$EPOCHREALTIME
        "$statusgate" serve --listen 127.0.0.1:0 --probe-listen "127.0.0.1:$probe_port" --grace 0s \
            --tls-cert "$work/certs/tls.crt" --tls-key "$work/certs/tls.key" </dev/null 2>"$work/statusgate.log" &
        children[statusgate]=$!
        until ask "$probe_port" /readyz; do
            ((SECONDS < until)) || die "statusgate is not ready after 10 s: $(<"$work/statusgate.log")"
            pause 0.0003
        done
        to=$EPOCHREALTIME
        stop statusgate
        echo $((${to/./} - ${from/./}))
    done >"$work/starts"
}

build >&2
for kb in "${sizes[@]}"; do awk -v bytes=$((kb * 1024)) -f "$bench/review.awk" >"$work/review-$kb.json"; done

printf '\n%d connections, %d rounds of %d s for each server; %s CPUs, load %s\n\n' \
    "$CONNECTIONS" "$rounds" "$seconds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
printf '%-18s %-11s %10s %9s %8s %8s %9s\n' '' '' requests/s 'CPU us' 'p50 us' 'p99 us' 'peak MB'
for kb in "${sizes[@]}"; do
    for webhook in validate mutate; do
        : >"$work/rounds"
        measure "$webhook" "$kb"
        awk -v webhook="$webhook" -v kb="$kb" -v connections="$CONNECTIONS" -v targets="$work/targets-$webhook" \
            "$MEDIAN $TABLE" "$work/rounds"
    done
done

measure_start
awk "$MEDIAN"' { list[NR] = $1 / 1000 }
    END { middle = median(list, NR); printf "\nready after %.1f ms (median of %d starts; %.1f to %.1f)\n\n", middle, NR, list[1], list[NR]
          print "ready|" sprintf("%.1f", middle) "|50|ms after the start" >targets }' targets="$work/targets-z" "$work/starts"
awk -F'|' '{ printf "%-42s %6s  of at most %4s %-22s %s\n", $1, $2, $3, $4, ($2 + 0 <= $3 + 0 ? "met" : "MISSED") }' "$work"/targets-*
