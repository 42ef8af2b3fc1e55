#!/usr/bin/env bash
# From nothing to a restored store: quickstart.sh STATE_DIR REPOSITORY TARGET
# STATE_DIR is the application's state.dir, REPOSITORY a folder or s3://bucket/prefix.
set -euo pipefail

state_dir=${1:?usage: quickstart.sh STATE_DIR REPOSITORY TARGET}
export SNAPSTORE_REPOSITORY=${2:?usage: quickstart.sh STATE_DIR REPOSITORY TARGET}
target=${3:?usage: quickstart.sh STATE_DIR REPOSITORY TARGET}

snapstore init --exist-ok
snapstore discover --state-dir "$state_dir"
snapstore snapshot --state-dir "$state_dir" --tag by=quickstart
snapstore list --latest 1
snapstore verify --read-data

# Without Kafka configured nothing proves that the changelog is still the one the snapshot was taken
# from, so a restore asks to be told that you know.
application=$(snapstore list --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["items"][0]["application"])')
snapstore restore --application "$application" --target "$target" --allow-unchecked-changelog
