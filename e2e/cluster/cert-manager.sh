#!/bin/bash
# cert-manager.sh: cert-manager's definitions and its controllers for certificates of a CA, on the
# cluster that runs. They are built once a machine, in some minutes.
. "$(dirname "$0")/env.sh"
PROGRAM=$CACHE/cert-manager
[ -f "$STATE/complete" ] || unavailable 'no cluster runs: ./up.sh 2'

if [ ! -x "$PROGRAM" ]; then
  command -v go >/dev/null || unavailable 'Go is needed to build cert-manager'
  (cd "$HERE/cert-manager" && go build -trimpath -ldflags '-s -w' -o "$PROGRAM.new.$$" .) >&2 ||
    unavailable 'cert-manager could not be built'
  mv "$PROGRAM.new.$$" "$PROGRAM"
fi
certificates=$("$HERE/published.sh" certificates)
for definition in "${certificates%/*}"/cert-manager.io_*.yaml; do
  # Some are too large for the annotation that `kubectl apply` leaves without it.
  kubectl apply --server-side -f "$definition" >&2
done
established certificates.cert-manager.io
if [ ! -f "$STATE/pid/cert-manager" ] || ! alive "$(cat "$STATE/pid/cert-manager")"; then
  start cert-manager "$PROGRAM" "$KUBECONFIG"
fi
