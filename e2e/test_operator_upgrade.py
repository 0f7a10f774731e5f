"""A new operator restarts nothing."""

import time

from brokers import Brokers, broker
from installation import Installation
from kube import wait_until

QUIET_SECONDS = 10.0


def test_an_upgrade_of_the_operator_restarts_no_broker(
    installation: Installation, brokers: Brokers
) -> None:
    brokers.namespace.apply(broker(brokers.name))
    brokers.wait_settled()
    before = brokers.pod_uids()
    operators = {pod["metadata"]["uid"] for pod in installation.pods()}
    try:
        # Another release names another image for brokers.
        installation.install("brokerImage.tag=another", "log.level=debug")
        wait_until(
            "the operator's pods are replaced",
            lambda: not operators & {pod["metadata"]["uid"] for pod in installation.pods()},
        )
        time.sleep(QUIET_SECONDS)
        brokers.wait_settled()
        assert brokers.pod_uids() == before
    finally:
        installation.install()
