#!/usr/bin/env bash
# Measures the resident memory of a server: after its start, after a load of 11 KB reviews, and after a burst of large and hostile bodies.
#
#     bench/burst.sh [BINARY]...             also as a part of `make bench`
#
# Without a BINARY, the one that users run. A missed target is printed, but is not an error.
set -euo pipefail

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

# Requests of each kind at the same time.
readonly AT_ONCE=${AT_ONCE:-16}

resident() { awk '$1 == "VmRSS:" { printf "%.1f", $2 / 1024 }' "/proc/${children[$1]}/status"; }
peak() { awk '$1 == "VmHWM:" { printf "%.1f", $2 / 1024 }' "/proc/${children[$1]}/status"; }

# An update of a status with COUNT conditions that are all ELEMENT.
review() { # COUNT ELEMENT
    awk -v count="$1" -v element="$2" 'BEGIN {
        printf "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":\"u\",\"operation\":\"UPDATE\","
        printf "\"resource\":{\"group\":\"vshn.appcat.vshn.io\",\"version\":\"v1\",\"resource\":\"xvshnpostgresqls\"},\"subResource\":\"status\","
        printf "\"object\":{\"status\":{\"conditions\":[%s", element
        for (i = 1; i < count; i++) printf ",%s", element
        printf "]}}}}"
    }'
}

burst() { # SERVER FILE
    local i pids=()
    for ((i = 0; i < AT_ONCE; i++)); do
        # 200, 400 or 503 (shed): each is an answer.
        curl -sS --max-time 60 --cacert "$work/certs/ca.crt" --data-binary "@$2" -o /dev/null "$(url "$1" validate)" &
        pids+=($!)
    done
    wait "${pids[@]}" || die "$1 does not answer ${2##*/}"
    alive "$1"
}

binaries=("$@")
if [[ ${#binaries[@]} -eq 0 ]]; then
    binaries=("$(compile statusgate)")
fi
"$root/hack/packages.sh" wrk curl
"${binaries[0]}" certs --out "$work/certs" >/dev/null
awk -v bytes=$((11 * 1024)) -f "$bench/review.awk" >"$work/review.json"
head -c $(((8 << 20) - 1)) /dev/zero | tr '\0' '[' >"$work/brackets"
review 60000 '{}' >"$work/empty-conditions"
review 60000 '{"type":1,"status":"x"}' >"$work/wrong-conditions"
review 190000 1 >"$work/numbers"

printf '\nresident memory in MB; the burst: %d requests at once of each of four bodies\n\n' "$AT_ONCE"
printf '%-40s %8s %8s %8s %8s %8s\n' binary start 11KB peak after1s after10s
for ((number = 0; number < ${#binaries[@]}; number++)); do
    server=burst-$number
    start_server "$server" "${binaries[$number]}"
    row=("$(resident "$server")")
    for webhook in validate mutate; do drive_webhook "$server" "$webhook" "$work/review.json" 3; done
    row+=("$(resident "$server")")
    for body in brackets empty-conditions wrong-conditions numbers; do burst "$server" "$work/$body"; done
    row+=("$(peak "$server")")
    pause 1
    row+=("$(resident "$server")")
    pause 9
    row+=("$(resident "$server")")
    printf '%-40s %8s %8s %8s %8s %8s\n' "${binaries[$number]##*/}" "${row[@]}"
    awk -v steady="${row[1]}" -v after="${row[4]}" 'BEGIN {
        if (steady >= 20) print "  missed: less than 20 MB under a load of 11 KB reviews"
        if (after >= 40) print "  missed: less than 40 MB ten seconds after the burst"
    }'
    stop "$server"
done
