#!/bin/bash
# published.sh tlsroutes|certificates|spark-applications: print where the definition of others'
# resources is, as its makers publish it in a Go module, which is downloaded once (15 MB).
. "$(dirname "$0")/env.sh"
case ${1:-} in
tlsroutes)
  module=sigs.k8s.io/gateway-api@v1.5.0
  path=config/crd/standard/gateway.networking.k8s.io_tlsroutes.yaml
  ;;
certificates)
  module=github.com/cert-manager/cert-manager@v1.21.2
  path=deploy/crds/cert-manager.io_certificates.yaml
  ;;
spark-applications)
  module=github.com/kubeflow/spark-operator/v2@v2.5.2
  path=config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml
  ;;
*)
  echo 'published.sh: which definition? tlsroutes, certificates, spark-applications' >&2
  exit 2
  ;;
esac

command -v go >/dev/null || unavailable "Go is needed to download $module"
file=$(go env GOMODCACHE)/$module/$path
# An older Go than the module asks for complains after it has downloaded it: only the file counts.
[ -f "$file" ] || go mod download "$module" >&2 || true
[ -f "$file" ] || unavailable "$module could not be downloaded"
echo "$file"
