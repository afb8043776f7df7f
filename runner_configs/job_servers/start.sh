#!/usr/bin/env bash
# Starts Beam's job server on localhost:8099, for Flink or Spark; what follows goes to the server itself (--job-port …). Needs
# Java 17, and Maven the first time.
#   runner_configs/job_servers/start.sh flink '[local]'        with a Flink in its own process
#   runner_configs/job_servers/start.sh flink localhost:8081   for a Flink cluster
#   runner_configs/job_servers/start.sh spark 'local[2]'       with a Spark in its own process
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
name="$1" master="$2"
shift 2
jars="$("$here/fetch_jars.sh" "$name")"
# Java 17 keeps these to itself, and Flink, Spark and Beam reach into them.
opened="java.lang java.lang.invoke java.lang.reflect java.util java.util.concurrent java.util.concurrent.atomic java.nio java.net
  java.io java.text java.time java.math sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
java=(java "-Xmx${JOB_SERVER_HEAP:-2g}")
for package in $opened; do java+=("--add-opens=java.base/$package=ALL-UNNAMED"); done
java+=(${JAVA_OPTS:-})
if [ "$name" = flink ]; then
  # Flink's own dist in front: the runner brings copies of its parts along.
  first="$(printf '%s:' "$jars"/flink/flink-dist-*.jar "$jars"/flink/log4j-*.jar)"
  exec "${java[@]}" -cp "$first$jars/runner/*" org.apache.beam.runners.flink.FlinkJobServerDriver \
    --job-host localhost --flink-master "$master" "$@"
fi
SPARK_LOCAL_IP=127.0.0.1 exec "${java[@]}" -cp "$jars/runner/*" org.apache.beam.runners.spark.SparkJobServerDriver \
  --job-host localhost --spark-master-url "$master" "$@"
