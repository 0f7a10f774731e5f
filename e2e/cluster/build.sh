#!/bin/bash
# build.sh: compile the `kube` binary, once a machine: about 8 minutes on 2 cores.
. "$(dirname "$0")/env.sh"
VARIABLES=k8s.io/component-base/version.git
[ -x "$KUBE" ] && exit 0
command -v go >/dev/null || unavailable 'Go 1.24 or newer is needed to build kube'

echo 'building the Kubernetes binary, once per machine (about 8 minutes on 2 cores) …' >&2
mkdir -p "$CACHE"
version=$(awk '$1 == "k8s.io/kubernetes" {print $2}' "$HERE/kube/go.mod")
flags="-s -w -X ${VARIABLES}Version=$version -X ${VARIABLES}Major=1"
flags+=" -X ${VARIABLES}Minor=$(echo "$version" | cut -d. -f2)"
cd "$HERE/kube"
go build -trimpath -ldflags "$flags" -o "$KUBE.new.$$" . || unavailable 'kube could not be built'
mv "$KUBE.new.$$" "$KUBE"
