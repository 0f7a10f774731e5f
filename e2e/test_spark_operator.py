"""Kubeflow's Spark operator carries an analysis out: the real one, as it is published."""

import pytest
from analyses import DRIVER, EXECUTOR, TWO, Analysis, analysis, single, stored
from brokers import Brokers
from clients import Clients
from conftest import environment
from foreign_kinds import BUILD_SECONDS_MAX, need_spark_operator
from kube import wait_until

QUEUE = "ANALYSED"
APPLICATIONS = "sparkapplications.sparkoperator.k8s.io"


@pytest.mark.timeout(BUILD_SECONDS_MAX + 600)
def test_kubeflows_operator_carries_an_analysis_out(brokers: Brokers, clients: Clients) -> None:
    environment("LOCKKEEPER_E2E_ANALYTICS_IMAGE")
    namespace = brokers.namespace
    need_spark_operator(namespace)
    namespace.apply(single(brokers.name))
    brokers.wait_ready()
    sender = clients.start("send", QUEUE)
    wait_until("there is something to read", lambda: len(sender.notes()) > 50)
    sender.end()
    # An operator of ours may have looked before that API was there: it is named, not found.
    spec = {"source": {"broker": brokers.name}, "engine": "sparkApplication", **TWO}
    namespace.apply(analysis("foreign", **spec))
    foreign = Analysis(namespace, "foreign")
    workers: set[str] = set()

    def has_succeeded() -> bool:
        workers.update(pod["metadata"]["name"] for pod in foreign.running(EXECUTOR))
        assert foreign.condition("Failed") != "True", foreign.status()
        return foreign.condition("Succeeded") == "True"

    took = wait_until("the analysis has succeeded", has_succeeded, 480.0)
    print(f"from its being applied, the analysis took {took:.0f} s")
    assert len(workers) == 2
    (run,) = foreign.history("Succeeded")
    application = namespace.get(APPLICATIONS, run["name"])
    assert application is not None
    assert application["status"]["applicationState"]["state"] == "COMPLETED"
    (driver,) = foreign.pods(DRIVER)
    assert driver["metadata"]["labels"]["sparkoperator.k8s.io/launched-by-spark-operator"] == "true"
    assert stored(foreign.results(run["name"]), QUEUE) == len(sender.notes())
