#!/usr/bin/env bash
# Tests action.yml and .github/workflows: their schemas, and their shell commands with shellcheck. Only the command of the action that calls
# statusgate runs.
#
#     hack/workflows-test.sh [BINARY]
#
# actionlint would check more, but its package downloads a program from GitHub.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
binary=$(realpath -- "${1-${CARGO_TARGET_DIR:-target}/debug/statusgate}")

readonly VERSION=0.39.0
hack/packages.sh python3-venv shellcheck
tools=$(realpath --canonicalize-missing -- "${CARGO_TARGET_DIR:-target}/tools/check-jsonschema-$VERSION")
if [[ ! -x $tools/bin/check-jsonschema ]]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check "check-jsonschema==$VERSION" >&2
fi

workflows=(.github/workflows/*.yml)
"$tools/bin/check-jsonschema" --builtin-schema vendor.github-workflows "${workflows[@]}"
"$tools/bin/check-jsonschema" --builtin-schema vendor.github-actions action.yml

scripts=$(mktemp -d)
trap 'rm -rf "$scripts"' EXIT
# A file for each `run`, with the value of an expression in place of it.
"$tools/bin/python" - "$scripts" action.yml "${workflows[@]}" <<'PYTHON'
import pathlib, re, sys
from ruamel.yaml import YAML

folder, files = pathlib.Path(sys.argv[1]), sys.argv[2:]


def commands(node):
    if isinstance(node, dict):
        if isinstance(node.get("run"), str):
            yield node["run"]
        node = node.values()
    if not isinstance(node, str) and hasattr(node, "__iter__"):
        for child in node:
            yield from commands(child)


for file in files:
    for number, command in enumerate(commands(YAML(typ="safe").load(pathlib.Path(file)))):
        name = f"{pathlib.Path(file).stem}-{number}.sh"
        (folder / name).write_text("#!/bin/bash\nset -eo pipefail\n" + re.sub(r"\$\{\{.*?\}\}", "value", command) + "\n")
PYTHON
count=$(find "$scripts" -name '*.sh' | wc -l)
((count > 0)) || { echo "workflows-test: no commands found" >&2 && exit 1; }
shellcheck "$scripts"/*.sh

# The last command of the action, with the arguments of a pull request whose object is wrong.
check=$(find "$scripts" -name 'action-*.sh' | sort | tail -n 1)
ln -s "$binary" "$scripts/statusgate"
said=$(PATH=$scripts:$PATH MANIFESTS=$'docs/status.yaml\nexamples/manifests' POLICIES=deploy/policies CONVENTION='' CRDS='' FAIL_ON=deny bash "$check") \
    && { echo "workflows-test: the action accepts an object that its policies reject: $said" >&2 && exit 1; }
grep -q '^::error file=examples/manifests/claims.yaml,line=8' <<<"$said" \
    || { echo "workflows-test: the action says nothing about the object: $said" >&2 && exit 1; }
echo "workflows-test: $((${#workflows[@]} + 1)) files match their schemas; $count scripts pass shellcheck"
