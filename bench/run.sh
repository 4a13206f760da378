#!/usr/bin/env bash
# Measures the cost of a review: statusgate compared with a null server, which has the same listener, TLS and HTTP, but no decisions.
#
#     bench/run.sh [--seconds N] [--rounds N] [--size KB]...          also as `make bench`
#
# Absolute numbers depend on the machine and its load. Both servers run in turn, in short rounds, and every result is the median of
# the ratios of neighboring rounds, because other load affects both. A missed target is printed, but is not an error. A wrong answer is an error.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/run.sh [--seconds N] [--rounds N] [--size KB]...
  --seconds N   how long each half of a round is for each server: CPU without pauses, then latency with pauses (2)
  --rounds N    how many rounds a case has (15)
  --size KB     size of the reviews; may be repeated (4, 11 and 180)
USAGE
}

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

seconds=2 rounds=15 sizes=()
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
readonly STARTS=15

peak_memory_of() { awk '$1 == "VmHWM:" { printf "%d", $2 }' "/proc/${children[$1]}/status"; }

# Checks the measured answer: allowed, without warnings and patches.
check_answer() { # SERVER WEBHOOK REVIEW
    local answer expected
    answer=$(curl -sS --fail-with-body --max-time 10 --cacert "$work/certs/ca.crt" -H 'Content-Type: application/json' \
        --data-binary "@$3" "$(url "$1" "$2")") || die "$1 does not answer /$2: $answer"
    expected='{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-41e8-b7cc-42010a800002","allowed":true}}'
    [[ $answer == "$expected" ]] || die "$1 should allow /$2 and say nothing more, but says: $answer"
}

# Checks that every answer was 200 and allowed.
check_counters() { # WEBHOOK
    all_allowed statusgate "statusgate_requests_total{.*webhook=\"$1\"" "statusgate_decisions_total{.*webhook=\"$1\",decision=\"allowed\""
}

measure() { # WEBHOOK KB
    local webhook=$1 kb=$2 review=$work/review-$2.json server round rate cpu p50 p99
    # Milliseconds between the requests of a connection, on average, while latency is measured. Without pauses, it is the length of a
    # queue: all connections wait for the same two CPUs, which the client uses too. With these, the null server uses about a tenth of
    # a CPU for any size.
    local pause=$((20 + kb / 2))
    # New servers for every case, to measure its memory.
    for server in statusgate null; do
        start_server "$server"
        check_answer "$server" "$webhook" "$review"
        drive_webhook "$server" "$webhook" "$review" 1
    done
    for ((round = 1; round <= rounds; round++)); do
        for server in statusgate null; do
            drive_webhook "$server" "$webhook" "$review" "$seconds"
            read -r rate cpu _ <<<"$line"
            drive_webhook "$server" "$webhook" "$review" "$seconds" "$pause"
            read -r _ _ p50 p99 <<<"$line"
            echo "$webhook $kb $server $round $rate $cpu $p50 $p99" >>"$work/rounds"
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
        # The size of an own --size has no target.
        limit["4"] = 1.6; limit["11"] = 1.8; limit["180"] = 2.2
        if (kb in limit) {
            print "CPU of a /" webhook " of " kb " KB|" sprintf("%.2f", ratio(6)) "|" limit[kb] "|times the null server" >targets
            print "p99 of a /" webhook " of " kb " KB|" sprintf("%.2f", ratio(8)) "|1.3|times the null server" >targets
        }
        if (kb == 11)
            print "memory, " webhook " of 11 KB, " connections " connections|" sprintf("%.1f", memory["statusgate"]) "|20|MB" >targets
    }'

# Milliseconds from the fork to the first 200. The loop takes 30 µs per iteration and sleeps for 300 µs, to leave the CPU to the server.
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
null_server=$(compile null_server)
for kb in "${sizes[@]}"; do awk -v bytes=$((kb * 1024)) -f "$bench/review.awk" >"$work/review-$kb.json"; done

printf '\n%d connections, %d rounds of %d s for each server; %s CPUs, load %s\n\n' \
    "$CONNECTIONS" "$rounds" "$seconds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
printf '%-18s %-11s %10s %9s %8s %8s %9s\n' '' '' requests/s 'CPU us' 'p50 us' 'p99 us' 'peak MB'
for kb in "${sizes[@]}"; do
    for webhook in validate mutate; do
        : >"$work/rounds"
        measure "$webhook" "$kb"
        awk -v webhook="$webhook" -v kb="$kb" -v connections="$CONNECTIONS" -v targets="$work/targets-$webhook-$kb" \
            "$MEDIAN $TABLE" "$work/rounds"
    done
done

measure_start
awk "$MEDIAN"' { list[NR] = $1 / 1000 }
    END { middle = median(list, NR); printf "\nready after %.1f ms (median of %d starts; %.1f to %.1f)\n\n", middle, NR, list[1], list[NR]
          print "ready|" sprintf("%.1f", middle) "|50|ms after the start" >targets }' targets="$work/targets-z" "$work/starts"
awk -F'|' '{ printf "%-42s %6s  of at most %4s %-22s %s\n", $1, $2, $3, $4, ($2 + 0 <= $3 + 0 ? "met" : "MISSED") }' "$work"/targets-*
