"""A namespace is deleted with everything in it: nothing keeps it."""

from brokers import Brokers, broker
from kube import wait_until
from test_destinations import destination

SECONDS_MAX = 30.0


def test_a_namespace_with_a_broker_and_destinations_ends(brokers: Brokers) -> None:
    namespace = brokers.namespace
    namespace.apply(
        broker(brokers.name),
        destination("retained", name="A"),
        destination("if-empty", name="B", deletionPolicy="DeleteIfEmpty"),
        destination("deleted", name="C", deletionPolicy="Delete"),
    )
    brokers.wait_settled()
    for name in ("retained", "if-empty", "deleted"):
        namespace.wait_ready("destination", name)
    namespace.kubectl("delete", "namespace", namespace.name, "--wait=false")
    taken = wait_until(
        "the namespace is gone",
        lambda: not namespace.get("namespace", namespace.name),
        SECONDS_MAX,
    )
    print(f"gone after {taken:.1f} s")
