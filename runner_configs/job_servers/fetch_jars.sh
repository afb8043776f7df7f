#!/usr/bin/env bash
# Fetches the jars of a job server, flink or spark, once, and prints the folder they are in. Needs Maven, and for Flink's own
# jars a Python with pip.
#   runner_configs/job_servers/fetch_jars.sh flink
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
name="$1"
pom="$here/$name.pom.xml"
folder="${THREADLOOM_CACHE:-$HOME/.cache/threadloom}/$name-$(cksum < "$pom" | cut -d' ' -f1)"
if [ ! -e "$folder/done" ]; then
  rm -rf "$folder"
  mkdir -p "$folder/flink"
  mvn -q -B -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$folder/runner" >&2
  if [ "$name" = flink ]; then
    "${PYTHON:-python3}" -m pip download -q --no-deps -d "$folder" apache-flink-libraries==1.19.3 >&2
    tar -xzf "$folder"/apache*flink*libraries*.tar.gz -C "$folder/flink" --strip-components=3 --wildcards '*/deps/lib/*.jar'
    rm "$folder"/apache*flink*libraries*.tar.gz
  fi
  touch "$folder/done"
fi
echo "$folder"
