#!/usr/bin/env bash
# Nightly drill against the real changelogs: is there a fresh snapshot of every store, and does what
# it brings back equal what the changelog holds? Another sample every night.
#   kafka_drill.sh APPLICATION [SAMPLE] [JUNIT_FILE]
# Repository and brokers are the configured ones (snapstore.yaml, or SNAPSTORE_REPOSITORY and
# SNAPSTORE_KAFKA_BOOTSTRAP). Ends with the exit code of what failed.
set -euo pipefail

application=${1:?usage: kafka_drill.sh APPLICATION [SAMPLE] [JUNIT_FILE]}
sample=${2:-3}
junit=${3:-drill.xml}

snapstore status --application "$application" --max-age "${MAX_AGE:-6h}"
snapstore drill --application "$application" --sample "$sample" --seed "$(date -u +%Y%m%d)" \
  --junit "$junit" --no-progress
