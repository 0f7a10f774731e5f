"""What brokers can take over while they run reaches them, and no pod starts anew."""

from brokers import Brokers, broker
from kube import wait_until


def test_policies_change_without_a_restart(brokers: Brokers) -> None:
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    before, configuration = brokers.lives(), _configuration(brokers)
    policies = [{"match": "ORDERS.>", "kind": "Queue", "prefetch": {"queue": 10}}]
    brokers.namespace.patch("broker", brokers.name, {"spec": {"destinationPolicies": policies}})
    taken = wait_until(
        "the broker runs with the new configuration",
        lambda: (
            brokers.condition("ConfigurationApplied") == "True"
            and _configuration(brokers) != configuration
        ),
        seconds=90,
    )
    print(f"configuration applied after {taken:.1f} s")
    assert brokers.lives() == before


def _configuration(brokers: Brokers) -> str:
    resource = brokers.resource() or {}
    return str(resource.get("status", {}).get("configuration", ""))
