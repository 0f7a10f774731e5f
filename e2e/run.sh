#!/bin/bash
# run.sh [PYTEST-ARGUMENTS…]: the end-to-end tests, or those that the arguments name.
#
# On the cluster of KUBECONFIG if that is set: then LOCKKEEPER_E2E_BROKER_IMAGE,
# LOCKKEEPER_E2E_OPERATOR_IMAGE and, for tests of analyses, LOCKKEEPER_E2E_ANALYTICS_IMAGE are
# images that its nodes can fetch. Else on a kind cluster where kind and Docker are; else on
# e2e/cluster, which needs root. Both are made and removed; LOCKKEEPER_E2E_KEEP=1 leaves them
# there, and the next run finds them.
set -euo pipefail
cd "$(dirname "$0")/.."
KIND_NAME=lockkeeper-e2e
TESTS=("$@")

# What cannot be done on this machine ends with this code, as in e2e/cluster.
UNAVAILABLE=75

skip() { echo "no end-to-end tests: $*" >&2; exit "$UNAVAILABLE"; }

images() { # What is built here and now; the large image of analyses where tests need it.
  export LOCKKEEPER_E2E_BROKER_IMAGE=lockkeeper.local/broker:e2e
  export LOCKKEEPER_E2E_OPERATOR_IMAGE=lockkeeper.local/operator:e2e
  local parts=(broker_image operator)
  IMAGES=("$LOCKKEEPER_E2E_BROKER_IMAGE" "$LOCKKEEPER_E2E_OPERATOR_IMAGE")
  local analyses='analyses|documents|spark_operator|e2e/?( |$)'
  if ((${#TESTS[@]} == 0)) || [[ "${TESTS[*]}" =~ ($analyses) ]]; then
    export LOCKKEEPER_E2E_ANALYTICS_IMAGE=lockkeeper.local/analytics:e2e
    parts+=(analytics)
    IMAGES+=("$LOCKKEEPER_E2E_ANALYTICS_IMAGE")
  fi
  e2e/images.sh "${parts[@]}" >&2
}

on_kind() {
  KUBECONFIG=$(mktemp)
  export KUBECONFIG LOCKKEEPER_E2E_NODES=kind
  e2e/kind.sh "$KIND_NAME"
  images
  kind load docker-image --name "$KIND_NAME" "${IMAGES[@]}"
}

on_cluster() {
  ((EUID == 0)) || skip 'there is no KUBECONFIG, no kind, and e2e/cluster needs root'
  export LOCKKEEPER_E2E_NODES=cluster
  # One that somebody has started stays.
  if [ -f "${LK_CLUSTER:-/var/tmp/lk-cluster}/complete" ]; then LOCKKEEPER_E2E_KEEP=1; fi
  local exported
  exported=$(e2e/cluster/up.sh 2)
  eval "$exported"
  BUILDER=buildah images
  e2e/cluster/load.sh "${IMAGES[@]}"
}

end() {
  if [ -n "${LOCKKEEPER_E2E_KEEP:-}" ]; then return; fi
  case ${LOCKKEEPER_E2E_NODES:-} in
  kind) kind delete cluster --name "$KIND_NAME" ;;
  cluster) e2e/cluster/down.sh ;;
  esac
}

if [ -n "${KUBECONFIG:-}" ]; then
  [ -n "${LOCKKEEPER_E2E_BROKER_IMAGE:-}" ] && [ -n "${LOCKKEEPER_E2E_OPERATOR_IMAGE:-}" ] ||
    skip 'with KUBECONFIG, LOCKKEEPER_E2E_BROKER_IMAGE and LOCKKEEPER_E2E_OPERATOR_IMAGE are needed'
elif command -v kind >/dev/null && docker info >/dev/null 2>&1; then
  trap end EXIT
  on_kind
else
  trap end EXIT
  on_cluster
fi
helm=$(e2e/cluster/helm.sh)
export PATH=${helm%/*}:$PATH
if ((${#TESTS[@]} == 0)); then TESTS=(e2e); fi
.venv/bin/pytest -n0 -v -p no:cacheprovider "${TESTS[@]}"
