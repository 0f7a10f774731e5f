#!/bin/bash
# kind.sh NAME: make the kind cluster of that name, or find it, in the KUBECONFIG of who calls. Its
# default StorageClass serves ReadWriteMany, too.
set -euo pipefail
cd "$(dirname "$0")"

if kind get clusters 2>/dev/null | grep -qx "$1"; then
  kind export kubeconfig --name "$1"
  exit
fi
kind create cluster --name "$1" --config kind.yaml --wait 2m
kubectl --namespace local-path-storage patch configmap local-path-config --type=merge \
  --patch '{"data": {"config.json": "{\"sharedFileSystemPath\": \"/var/shared-volumes\"}"}}'
kubectl --namespace local-path-storage rollout restart deployment/local-path-provisioner
kubectl --namespace local-path-storage rollout status deployment/local-path-provisioner
