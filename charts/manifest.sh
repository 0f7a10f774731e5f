#!/bin/bash
# manifest.sh HELM: the chart with its default values as one file for `kubectl apply -f`.
set -euo pipefail
cd "$(dirname "$0")"
NAMESPACE=lockkeeper-system
# The oldest that the chart takes.
KUBERNETES=1.30.0

cat <<HEAD
# Written by \`make manifests\` from charts/lockkeeper. Do not edit.
# The operator for all namespaces, two replicas. Say first where your images are: the lines with
# lockkeeper:VERSION and lockkeeper-operator:VERSION name no registry.
apiVersion: v1
kind: Namespace
metadata:
  name: $NAMESPACE
  labels:
    pod-security.kubernetes.io/enforce: restricted
HEAD
"$1" template lockkeeper lockkeeper --namespace "$NAMESPACE" --kube-version "$KUBERNETES" \
  --set crds.keep=false --no-hooks
