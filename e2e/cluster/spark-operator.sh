#!/bin/bash
# spark-operator.sh: Kubeflow's Spark operator, its definitions and its controllers, on the cluster
# that runs. It is built once a machine, in some minutes, and submits with the Spark of .venv.
. "$(dirname "$0")/env.sh"
PROGRAM=$CACHE/spark-operator
PYTHON=$HERE/../../.venv/bin/python
[ -f "$STATE/complete" ] || unavailable 'no cluster runs: ./up.sh 2'
[ -x "$PYTHON" ] || unavailable 'its Spark is that of .venv: make setup'
java=$(command -v java) || unavailable 'the Spark operator needs Java 17 or newer'

applications=$("$HERE/published.sh" spark-applications)
definitions=${applications%/*}
if [ ! -x "$PROGRAM" ]; then
  (cd "${definitions%/config/*}" &&
    go build -trimpath -ldflags '-s -w' -o "$PROGRAM.new.$$" ./cmd/operator) >&2 ||
    unavailable 'the Spark operator could not be built'
  mv "$PROGRAM.new.$$" "$PROGRAM"
fi
# They are too large for the annotation that `kubectl apply` leaves without it.
kubectl apply --server-side -f "$definitions" >&2
established sparkapplications.sparkoperator.k8s.io
if [ ! -f "$STATE/pid/spark-operator" ] || ! alive "$(cat "$STATE/pid/spark-operator")"; then
  # Beside the cluster's other daemons, as cert-manager: spark-submit takes KUBECONFIG, too.
  start spark-operator env \
    SPARK_HOME="$("$PYTHON" -c 'import pyspark; print(*pyspark.__path__)')" \
    JAVA_HOME="$(dirname "$(dirname "$(readlink -f "$java")")")" \
    KUBERNETES_SERVICE_HOST="$HOST_IP" KUBERNETES_SERVICE_PORT=6443 \
    "$PROGRAM" controller start --kubeconfig "$KUBECONFIG" --health-probe-bind-address 0
fi
