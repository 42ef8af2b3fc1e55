#!/usr/bin/env bash
# Restore drill: does the newest snapshot of every store of an application come back?
#   restore_drill.sh APPLICATION
# The repository is the configured one (snapstore.yaml or SNAPSTORE_REPOSITORY). Ends with the exit
# code of what failed; nothing outside a scratch folder is written.
set -euo pipefail

application=${1:?usage: restore_drill.sh APPLICATION}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

snapstore verify --read-data --no-progress
snapstore restore --application "$application" --target "$scratch" \
  --allow-unchecked-changelog --no-progress

# Opens every restored store and reads its offset.
snapstore list --application "$application" --latest 1 --json >"$scratch/listed.json"
snapstore discover --state-dir "$scratch" --application "$application" --json >"$scratch/found.json"
python3 - "$scratch/listed.json" "$scratch/found.json" <<'PYTHON'
import json, sys

listed, found = (json.load(open(name))["items"] for name in sys.argv[1:])
expected = {(item["task"], item["store"]): item["applied_offset"] for item in listed}
restored = {
    (item["task"], item["store"]): item["positions"][0]["applied_offset"] if item["positions"] else None
    for item in found
    if item["problem"] is None
}
wrong = sorted(key for key in expected if restored.get(key, "missing") != expected[key])
for task, store in wrong:
    print(f"{task}/{store}: expected offset {expected[task, store]}, found {restored.get((task, store))}")
print(f"drill: {len(expected) - len(wrong)} of {len(expected)} stores came back at their offset")
sys.exit(4 if wrong else 0)
PYTHON
