#!/usr/bin/env bash
# Measures `statusgate check` for local files: one process, from the start to the last line.
#
#     bench/check.sh [--objects N] [--rounds N]          also as `make bench-check`
#
# A missed target is printed, but is not an error. A wrong report is an error.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/check.sh [--objects N] [--rounds N]
  --objects N   how many objects of 5 KB (1000)
  --rounds N    how often each case is run (9)
USAGE
}

# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

objects=1000 rounds=9
while [[ $# -gt 0 ]]; do
    case $1 in
        --objects) objects=$(number "$1" "${2-}") ;;
        --rounds) rounds=$(number "$1" "${2-}") ;;
        -h | --help) usage && exit ;;
        *) usage >&2 && exit 2 ;;
    esac
    shift 2
done
readonly NOW=2024-06-01T12:00:00Z TARGET=0.5

# measure TITLE FILE FINDINGS: prints the median of the elapsed and the CPU time, and the peak memory.
measure() {
    local title=$1 file=$2 findings=$3 round status
    : >"$work/times"
    for ((round = 1; round <= rounds; round++)); do
        status=0
        run check /usr/bin/time -f '%e %U %S %M' -o "$work/time" "$statusgate" check --now "$NOW" "$file" \
            >"$work/out" || status=$?
        ((status == (findings > 0))) || die "$title: exit code $status"
        tail -n 1 "$work/time" >>"$work/times"
    done
    [[ $(tail -n 1 "$work/out") == "$objects objects in 1 file: $objects judged (appcat $objects)"* ]] ||
        die "$title: $(tail -n 1 "$work/out")"
    [[ $(grep -c ': deny: ' "$work/out") == "$findings" ]] || die "$title: not $findings findings"
    awk -v title="$title" -v bytes="$(stat -c %s "$file")" -v objects="$objects" -v target="$TARGET" "$MEDIAN"'
        { wall[NR] = $1; cpu[NR] = $2 + $3; if ($4 > peak) peak = $4 }
        END {
            m = median(wall, NR)
            printf "%-38s %8.1f %8.2f %8.2f %9.0f %8.1f  %s\n", title, bytes / objects / 1000, m, median(cpu, NR),
                objects / m, peak / 1024, (m * 1000 / objects <= target ? "" : "missed")
        }' "$work/times"
}

statusgate=$(compile statusgate)
[[ -x /usr/bin/time ]] || "$root/hack/packages.sh" time >&2
generate() { awk -v objects="$objects" -v shape="$1" -v bad="$2" -f "$bench/check.awk"; }
generate documents 0 >"$work/clean.yaml"
generate documents 100 >"$work/some.yaml"
generate documents 1 >"$work/all.yaml"
generate list 100 >"$work/list.yaml"

printf '\n%d objects, median of %d runs; %s CPUs, load %s; target %s s for 1000\n\n' \
    "$objects" "$rounds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)" "$TARGET"
printf '%-38s %8s %8s %8s %9s %8s\n' '' 'KB each' 'wall s' 'CPU s' 'objects/s' 'peak MB'
measure 'documents, no findings' "$work/clean.yaml" 0
measure 'documents, 1 in 100 with a finding' "$work/some.yaml" $((objects / 100))
measure 'documents, all with a finding' "$work/all.yaml" "$objects"
measure 'one List, 1 in 100 with a finding' "$work/list.yaml" $((objects / 100))
