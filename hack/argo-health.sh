#!/usr/bin/env bash
# Compares the health of Argo CD's recorded test cases with that of the built-in conventions: hack/argo-health.sh CASES.jsonl.xz
# A case is a line {"object", "status", "test", "conventions"}; those without conventions are of kinds that no example policy selects. Prints the cases
# that differ and the number of equal ones, and how often the guess for the other kinds is right.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
[[ -r ${1-} ]] || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
"$root/hack/packages.sh" jq xz-utils
cargo build --profile test --quiet --manifest-path "$root/Cargo.toml" --bin statusgate
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Names are unique, so that the results can be joined.
xz -dc "$1" | jq -c '.object.metadata.name = "case-\(input_line_number)"' > "$work/cases"
# Exit code 1: an object has failed.
jq -c .object "$work/cases" | "$root/target/debug/statusgate" status -o json - > "$work/results" || [[ $? -eq 1 ]]
jq -rn --slurpfile cases "$work/cases" --slurpfile results "$work/results" '
    {current: "Healthy", inProgress: "Progressing", failed: "Degraded", suspended: "Suspended", terminating: "Progressing", unknown: "Unknown"} as $argo
    | ($results | INDEX(.name)) as $by_name
    | [$cases[] | $by_name[.object.metadata.name] as $ours | $ours.healthReason as $why
        | ($why | capture("its status suggests (?<guess>[A-Za-z]+)").guess // $ours.health) as $health
        | {test, status, known: (.conventions != []), $health, equal: (.status == $argo[$health])}]
    | (map(select(.known)) | (.[] | select(.equal | not) | "\(.test): \(.status), here \(.health)"), "\(map(select(.equal)) | length) of \(length) cases are equal"),
      (map(select(.known | not)) | map(select(.health != "unknown")) as $said | map(select(.health == "current")) as $green | map(select(.health == "failed")) as $red
        | "without a convention: \(length) cases, \($said | length) answers, \($said | map(select(.equal)) | length) of them equal; "
        + "\($green | map(select(.status == "Degraded" or .status == "Progressing")) | length) of \($green | length) current ones are not Healthy, "
        + "\($red | map(select(.status == "Healthy" or .status == "Progressing")) | length) of \($red | length) failed ones not Degraded")'
