#!/bin/bash
# images.sh [PART…]: build lockkeeper.local/broker and lockkeeper.local/operator, or those PARTs of
# broker_image, operator and analytics, with the tag $TAG (e2e), by docker where it runs, else by
# buildah. BASE and BUILDER=docker|buildah choose. With CHART=1 they have the names that the chart
# expects: lockkeeper, lockkeeper-operator and lockkeeper-analytics of its own version.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- broker_image operator
TAG=${TAG:-e2e}

builder() {
  if docker info >/dev/null 2>&1; then echo docker; else echo buildah; fi
}

name_of() { # PART
  if [ -z "${CHART:-}" ]; then
    echo "lockkeeper.local/${1%_image}:$TAG"
    return
  fi
  local version suffix=-$1
  version=$(awk '$1 == "appVersion:" {print $2}' charts/lockkeeper/Chart.yaml)
  # As nodes complete a name without a registry.
  echo "docker.io/library/lockkeeper${suffix%-broker_image}:$version"
}

BUILDER=${BUILDER:-$(builder)}
if [ "$BUILDER" = buildah ] && [ -z "${BASE:-}" ]; then e2e/cluster/base.sh; fi
for part in "$@"; do
  name=$(name_of "$part")
  arguments=(-t "$name" -f "$part/Dockerfile" ${BASE:+--build-arg "BASE=$BASE"} .)
  if [ "$BUILDER" = docker ]; then
    docker build --quiet "${arguments[@]}" >/dev/null
  else
    buildah bud --quiet --layers --isolation chroot "${arguments[@]}" >/dev/null
  fi
  echo "$name"
done
