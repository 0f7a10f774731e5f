#!/bin/bash
# helm.sh: print where helm is; where there is none, it is built with Go (about 90 s, once).
. "$(dirname "$0")/env.sh"
MODULE=helm.sh/helm/v3/cmd/helm@v3.21.4

if [ -x "$CACHE/helm" ]; then
  echo "$CACHE/helm"
elif ! command -v helm; then
  command -v go >/dev/null || unavailable 'there is no helm, and no Go to build it'
  mkdir -p "$CACHE"
  GOBIN=$CACHE go install "$MODULE" >&2 || unavailable 'helm could not be built'
  echo "$CACHE/helm"
fi
