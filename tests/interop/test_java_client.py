"""The unmodified Java client of ActiveMQ finds the same broker in Lockkeeper as in ActiveMQ.

Every scenario is a JMS program that checks what it gets; here it runs against our broker and
against a real ActiveMQ, which shows that the scenario asks for what ActiveMQ does.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from brokers import RunningBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCENARIOS = (
    "acknowledge-auto",
    "acknowledge-client",
    "acknowledge-client-beyond-prefetch",
    "acknowledge-consumer-closes",
    "acknowledge-dead-letter",
    "acknowledge-dups-ok",
    "acknowledge-individual",
    "acknowledge-listener-throws",
    "acknowledge-optimized",
    "acknowledge-recover",
    "acknowledge-topic-client",
    "advisory-destinations",
    "anonymous-producer",
    "browser",
    "browser-selector",
    "composite-receive",
    "composite-send",
    "connection-broker-info",
    "connection-duplicate-client-id",
    "connection-idle",
    "connection-many",
    "connection-wire-options",
    "connection-without-advisories",
    "consumer-exclusive",
    "consumer-listener",
    "consumer-priority",
    "consumers-share",
    "durable-changed-selector",
    "durable-errors",
    "durable-offline",
    "durable-selector",
    "durable-transacted",
    "durable-two-subscriptions",
    "durable-unacknowledged",
    "durable-unsubscribe",
    "failover-consumer",
    "failover-durable",
    "failover-producer",
    "failover-temporary-queue",
    "failover-transaction",
    "failover-unacknowledged",
    "message-async-callback",
    "message-async-window",
    "message-compression",
    "message-expiry",
    "message-groups",
    "message-headers",
    "message-jms2-context",
    "message-large",
    "message-order",
    "message-properties",
    "message-types",
    "message-types-non-persistent",
    "message-wire-versions",
    "prefetch-one-shares",
    "prefetch-zero",
    "request-reply",
    "selector-invalid",
    "selector-leaves-the-rest",
    "selectors",
    "temporary-deleted",
    "temporary-topic",
    "topic-fan-out",
    "topic-no-local",
    "transaction-both",
    "transaction-connection-closes",
    "transaction-large",
    "transaction-receive",
    "transaction-send",
    "transaction-topic",
    "wildcard-queue",
    "wildcard-topic",
    "xa-one-phase-and-rollback",
    "xa-recover",
    "xa-two-phase",
)
RESTART = {"restart-before", "restart-after"}

RunScenario = Callable[[str, str], dict[str, Any]]


def test_every_scenario_of_the_program_is_run(scenario_names: set[str]) -> None:
    assert scenario_names == {*SCENARIOS, *RESTART}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_java_client_gets_what_it_expects(
    scenario: str, broker: "RunningBroker", run_scenario: RunScenario
) -> None:
    result = run_scenario(scenario, broker.url)
    assert result["ok"], result["error"]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_was_stored_outlives_the_broker(
    end: str, broker: "RunningBroker", run_scenario: RunScenario
) -> None:
    before = run_scenario("restart-before", broker.url)
    assert before["ok"], before["error"]
    getattr(broker, end)()
    broker.start()
    after = run_scenario("restart-after", broker.url)
    assert after["ok"], after["error"]
