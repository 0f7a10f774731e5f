#!/bin/bash
# quickstart.sh kind|cluster: a cluster, the operator in it, a pair of brokers, a message sent and
# received; then what to look at next. With kind that needs Docker, with cluster (e2e/cluster) root
# and Go. Both are left there; what is there already is used. ANALYTICS= leaves out the large image.
set -euo pipefail
cd "$(dirname "$0")/.."
WAY=$1
KIND_NAME=lockkeeper
PARTS=(broker_image operator)
[ -z "${ANALYTICS-yes}" ] || PARTS+=(analytics)

step() { printf '\033[1m==> %s\033[0m\n' "$*"; }
fail() { echo "make $WAY: $*" >&2; exit 1; }

on_kind() {
  local program
  for program in kind kubectl docker; do
    command -v "$program" >/dev/null || fail "$program is not installed; make cluster needs none"
  done
  docker info >/dev/null 2>&1 || fail 'Docker does not run: start it, or make cluster'
  e2e/kind.sh "$KIND_NAME"
  ENDS="kind delete cluster --name $KIND_NAME"
  SELECTS="kubectl config use-context kind-$KIND_NAME"
  step 'Build the images, and bring them to the nodes'
  local image
  for image in $(CHART=1 BUILDER=docker e2e/images.sh "${PARTS[@]}"); do
    kind load docker-image --name "$KIND_NAME" "$image"
  done
}

on_cluster() {
  ((EUID == 0)) || fail 'root is needed: sudo make cluster, or make kind'
  local exported
  exported=$(e2e/cluster/up.sh 2)
  eval "$exported"
  ENDS=e2e/cluster/down.sh
  SELECTS=$exported
  step 'Build the images, and bring them to the nodes'
  local images
  images=$(CHART=1 BUILDER=buildah e2e/images.sh "${PARTS[@]}")
  # shellcheck disable=SC2086 # one word an image
  e2e/cluster/load.sh $images
}

step 'Start a cluster'
case $WAY in
kind) on_kind ;;
cluster) on_cluster ;;
*) echo 'quickstart.sh kind|cluster' >&2; exit 2 ;;
esac
helm=$(e2e/cluster/helm.sh)
# The cluster's own binary has a kubectl.
KUBECTL=kubectl
command -v kubectl >/dev/null || KUBECTL="$HOME/.cache/lk-cluster/kube kubectl"
export KUBECTL
plugin=.venv/bin/kubectl-lockkeeper

step 'Install the operator'
"$helm" upgrade --install lockkeeper charts/lockkeeper --namespace lockkeeper-system \
  --create-namespace --wait --timeout 3m

step 'Start a pair of brokers'
$KUBECTL apply -f docs/samples/cluster-pair.yaml
$KUBECTL wait --for=condition=Ready broker/orders --timeout=3m
$KUBECTL wait --for=condition=StandbysReady broker/orders --timeout=2m

step 'Send a message, and receive it'
$plugin send orders GREETINGS 'hello from the quickstart'
$plugin receive orders GREETINGS

step 'Done. To look at next:'
cat <<END
  $SELECTS
  $plugin status orders
  $plugin promote orders
  $KUBECTL get brokers
  $KUBECTL describe broker orders
To end it: $ENDS
END
