#!/bin/bash
# images.sh [PART…]: build lockkeeper.local/broker and lockkeeper.local/operator, or those PARTs of
# broker_image, operator and analytics, with the tag $TAG (e2e), by docker where it runs, else by
# buildah. BASE and BUILDER=docker|buildah choose.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- broker_image operator
TAG=${TAG:-e2e}

builder() {
  if docker info >/dev/null 2>&1; then echo docker; else echo buildah; fi
}

BUILDER=${BUILDER:-$(builder)}
if [ "$BUILDER" = buildah ] && [ -z "${BASE:-}" ]; then e2e/cluster/base.sh; fi
for part in "$@"; do
  name=lockkeeper.local/${part%_image}:$TAG
  arguments=(-t "$name" -f "$part/Dockerfile" ${BASE:+--build-arg "BASE=$BASE"} .)
  if [ "$BUILDER" = docker ]; then
    docker build --quiet "${arguments[@]}" >/dev/null
  else
    buildah bud --quiet --layers --isolation chroot "${arguments[@]}" >/dev/null
  fi
  echo "$name"
done
