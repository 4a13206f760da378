#!/usr/bin/env bash
# Counts lines of Rust for each package and folder of src/ and crates/*/src/, and for tests/.
#
#     hack/lines.sh [REPOSITORY]
#
# A test line is one in a `#[cfg(test)] mod`, in a file tests.rs or in a folder tests/ of src/.
# A comment line is any other line that holds only a comment. The rest is code, blank lines
# left out. The total has every line.
set -euo pipefail
cd -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/..}"

find src crates/*/src tests -name '*.rs' -print0 | sort -z | xargs -0 awk '
    FNR == 1 {
        path = FILENAME
        is_source = path !~ /^tests/
        package = path ~ /^crates/ ? path : "src"
        sub(/^crates\/statusgate-/, "", package)
        sub(/\/.*/, "", package)
        sub(/^crates\/[^\/]*\//, "", path)
        split(path, parts, "/")
        folder = !is_source ? "tests/" : package "/" (parts[3] == "" ? "*.rs" : parts[2])
        in_tests = is_source && path ~ /\/tests(\.rs|\/)/
        attribute = 0
    }
    { total[folder]++; if (is_source) total["all"]++ }
    /^[ \t]*$/ && !in_tests && !in_module { next }
    # rustfmt puts the end of a top-level module into the first column.
    /^#\[cfg\(test\)\]/ { attribute = 1 }
    attribute && /^(pub(\([a-z]+\))? )?mod .*\{$/ { in_module = 1 }
    { kind = in_tests || attribute || in_module ? "tests" : /^[ \t]*\/\// ? "comments" : "code" }
    attribute && /^(const|fn|impl|mod|static|struct|use) / { attribute = 0 }
    in_module && /^}/ { in_module = 0 }
    { count[folder, kind]++; if (is_source) count["all", kind]++ }
    function row(name) {
        return sprintf("%-22s %8d %9d %7d %8d", name, count[name, "code"], count[name, "comments"], count[name, "tests"], total[name])
    }
    END {
        printf "%-22s %8s %9s %7s %8s\n", "folder", "code", "comments", "tests", "total"
        fflush()
        for (name in total) if (name !~ /^(all|tests\/)$/) print row(name) | "sort"
        close("sort")
        print row("all")
        print row("tests/")
    }'
