#!/usr/bin/env bash
# One worker of the Java SDK, started by a TaskManager for what the Kafka connector expands to (see start.sh).
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
jars="$("$here/../job_servers/fetch_jars.sh" kafka)"
opened="java.lang java.util java.util.concurrent java.nio"
java=(java "-Xmx${JAVA_WORKER_HEAP:-512m}" "-javaagent:$(echo "$jars"/runner/jamm-*.jar)")
for package in $opened; do java+=("--add-opens=java.base/$package=ALL-UNNAMED"); done
exec "${java[@]}" -cp "$jars/classes:$jars/runner/*" JavaWorker "$@"
