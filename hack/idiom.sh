#!/usr/bin/env bash
# Lists local closures that have a name and are used once, and counts bindings that only shadow themselves. `make lint` runs it.
#
#     hack/idiom.sh [FOLDER ...]
#
# A closure that is used once is read in two places: write it where it is used, or as a function. `let x = x.…` gives one name to
# several things: write one expression, or a function with a name. At most 4 of 1,000 lines may shadow.
#
# It reads lines as rustfmt writes them: a block ends at the next line with less indentation. Test modules are left out.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
[[ $# -gt 0 ]] || set -- src crates/*/src

find "$@" -name '*.rs' -not -name tests.rs -not -path '*/tests/*' -print0 | sort -z | xargs -0 awk '
    function uses(text, name,    rest, count) {
        gsub(/"([^"\\{]|\\.)*"/, "", text)
        sub(/\/\/.*/, "", text)
        rest = " " text " "
        while (match(rest, "[^A-Za-z0-9_.]" name "[^A-Za-z0-9_]")) {
            count++
            rest = substr(rest, RSTART + RLENGTH - 1)
        }
        return count + 0
    }
    function finish(    at, k, name, indent, count, text) {
        for (at = 1; at <= lines; at++) {
            text = line[at]
            if (match(text, /^ *let (mut )?[a-z_0-9]+ = (&?[a-z_0-9]+)\./) || match(text, /^ *let (mut )?[a-z_0-9]+: [^=]* = (&?[a-z_0-9]+)\./)) {
                name = text; sub(/^ *let (mut )?/, "", name); k = name; sub(/[: ].*/, "", name)
                sub(/^[^=]*= &?/, "", k); sub(/\..*/, "", k)
                if (k == name) shadows++
            }
            if (text !~ /^ *let (mut )?[a-z_0-9]+(: [^=]*)? =( (move )?\|.*)?$/) continue
            if (text ~ /=$/ && line[at + 1] !~ /^ *(move )?\|[^|]*\|/) continue
            name = text; sub(/^ *let (mut )?/, "", name); sub(/[: ].*/, "", name)
            match(text, /[^ ]/); indent = RSTART - 1
            count = 0
            for (k = at + 1; k <= lines; k++) {
                match(line[k], /[^ ]/)
                if (RSTART > 0 && RSTART - 1 < indent) break
                count += uses(line[k], name)
            }
            if (count <= 1) { print file ":" at ": " name " is used once"; once++ }
        }
        total += lines
    }
    FNR == 1 { if (NR > 1) finish(); file = FILENAME; lines = 0; in_tests = 0 }
    /^#\[cfg\(test\)\]/ { in_tests = 1 }
    !in_tests { line[++lines] = $0 }
    END {
        finish()
        printf "%d closures with a name are used once; %.1f of 1,000 lines shadow themselves (%d)\n", once, 1000 * shadows / total, shadows
        exit once > 0 || 1000 * shadows / total > 4
    }'
