#!/usr/bin/env bash
# Starts Beam's Java expansion service with the Kafka connector, on port 8096 or the one given, and compiles the worker that
# runs what it expands to. Needs a JDK 17, and Maven the first time. On a cluster this folder and the jars (fetch_jars.sh
# kafka) have to be on every machine under the same name.
#   runner_configs/kafka/start.sh [PORT]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
port="${1:-8096}"
jars="$("$here/../job_servers/fetch_jars.sh" kafka)"
if [ ! -e "$jars/classes/JavaWorker.class" ] || [ "$here/JavaWorker.java" -nt "$jars/classes/JavaWorker.class" ]; then
  mkdir -p "$jars/classes"
  javac -cp "$jars/runner/*" -d "$jars/classes" "$here/JavaWorker.java"
fi
# Only one small jar is staged with every job: the worker has all of them.
exec java -Xmx256m -cp "$jars/runner/*" org.apache.beam.sdk.expansion.service.ExpansionService "$port" \
  --experiments=use_deprecated_read --filesToStage="$(echo "$jars"/runner/jamm-*.jar)" \
  --defaultEnvironmentType=PROCESS --defaultEnvironmentConfig="{\"command\":\"$here/worker.sh\"}"
