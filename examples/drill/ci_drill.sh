#!/usr/bin/env bash
# The drill in CI, without an S3 account: an S3 server (moto) runs here for the time of the test.
#   ci_drill.sh STATE_DIR APPLICATION [PORT]
# Needs, from a checkout of snapstore: pip install '.[demo]'
set -euo pipefail

state_dir=${1:?usage: ci_drill.sh STATE_DIR APPLICATION [PORT]}
application=${2:?usage: ci_drill.sh STATE_DIR APPLICATION [PORT]}
port=${3:-5555}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)

export AWS_ACCESS_KEY_ID=drill AWS_SECRET_ACCESS_KEY=made-up AWS_EC2_METADATA_DISABLED=true
moto_server -H 127.0.0.1 -p "$port" >"$work/moto.log" 2>&1 &
server=$!
trap 'kill "$server"; rm -rf "$work"' EXIT
for _ in $(seq 600); do
  curl --noproxy '*' -fsS -X PUT "http://127.0.0.1:$port/drill" >/dev/null 2>&1 && break
  sleep 0.2
done

cat >"$work/snapstore.yaml" <<YAML
repository:
  url: s3://drill/snapshots
  options: {endpoint_url: "http://127.0.0.1:$port", region: us-east-1, proxies: {}}
  accept_unverified_uploads: true   # moto believes every checksum; Amazon S3 does not
state: {cache_dir: "$work/cache"}
YAML
export SNAPSTORE_CONFIG=$work/snapstore.yaml

# Init finds out whether of several writers one gets a key; moto is not always quick enough for that.
snapstore init || snapstore init || snapstore init
snapstore snapshot --state-dir "$state_dir" --application "$application" --no-progress
"$here/restore_drill.sh" "$application"
