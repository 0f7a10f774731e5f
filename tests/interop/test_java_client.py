"""The unmodified Java client of ActiveMQ finds the same broker in Lockkeeper as in ActiveMQ.

Every scenario is a JMS program that checks what it gets; here it runs against our broker and
against a real ActiveMQ, which shows that the scenario asks for what ActiveMQ does.
"""

from typing import TYPE_CHECKING

import pytest
from configured_scenarios import CONFIGURED, NETWORK, SECURED

if TYPE_CHECKING:
    from brokers import RunningBroker
    from java_scenarios import JavaScenarios

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
    "advisory-composite",
    "advisory-connection",
    "advisory-connection-exists",
    "advisory-consumer",
    "advisory-consumer-events",
    "advisory-consumer-exists",
    "advisory-dead-lettered",
    "advisory-destinations",
    "advisory-expired",
    "advisory-origin",
    "advisory-producer",
    "advisory-producer-events",
    "advisory-producer-exists",
    "advisory-queue",
    "advisory-silent",
    "advisory-temporary-queue",
    "advisory-unsubscribed",
    "advisory-wildcard",
    "anonymous-producer",
    "browser",
    "browser-selector",
    "composite-dead-letter",
    "composite-not-persistent",
    "composite-original",
    "composite-receive",
    "composite-send",
    "composite-transacted",
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
    "destination-characters",
    "destination-options",
    "durable-changed-selector",
    "durable-errors",
    "durable-list",
    "durable-no-local",
    "durable-non-persistent",
    "durable-offline",
    "durable-selector",
    "durable-transacted",
    "durable-two-subscriptions",
    "durable-unacknowledged",
    "durable-unsubscribe",
    "durable-wildcard",
    "durable-wildcard-acknowledged",
    "durable-wildcard-changed",
    "durable-wildcard-small-window",
    "durable-wildcard-transacted",
    "durable-wildcard-unsubscribe",
    "exclusive-beside-others",
    "exclusive-priority-takes-over",
    "exclusive-successor",
    "exclusive-takeover-redelivers",
    "failover-consumer",
    "failover-durable",
    "failover-durable-wildcard",
    "failover-producer",
    "failover-temporary-queue",
    "failover-transaction",
    "failover-unacknowledged",
    "group-closed",
    "group-owner-leaves",
    "group-restarted",
    "group-waits-for-its-owner",
    "group-with-selectors",
    "groups-for-a-late-consumer",
    "message-async-callback",
    "message-async-window",
    "message-broker-times",
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
    "priority-overflow",
    "recovery-nothing",
    "redelivered-first",
    "request-reply",
    "rolled-back-in-order",
    "selector-invalid",
    "selector-leaves-the-rest",
    "selectors",
    "selectors-side-by-side",
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
    "wildcard-browser",
    "wildcard-in-a-list",
    "wildcard-queue",
    "wildcard-topic",
    "xa-join",
    "xa-one-phase-and-rollback",
    "xa-recover",
    "xa-two-phase",
)
RESTART = {"restart-before", "restart-after"}
BLOBS = {"blobs-answered"}
"""Scenarios in which our client has a part."""

NOT_BUILT: dict[str, str] = {}
"""What our broker cannot do yet, by scenario. Strict: a feature that comes leaves this list."""


def test_every_scenario_of_the_program_is_run(java_scenarios: "JavaScenarios") -> None:
    configured = {scenario for scenarios in CONFIGURED.values() for scenario in scenarios}
    elsewhere = {*RESTART, *BLOBS, *SECURED, *NETWORK, *configured}
    assert java_scenarios.names() == {*SCENARIOS, *elsewhere}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_java_client_gets_what_it_expects(
    scenario: str,
    broker: "RunningBroker",
    java_scenarios: "JavaScenarios",
    request: pytest.FixtureRequest,
) -> None:
    if broker.kind == "lockkeeper" and scenario in NOT_BUILT:
        request.applymarker(pytest.mark.xfail(reason=NOT_BUILT[scenario], strict=True))
    result = java_scenarios.run(scenario, broker.url)
    assert result["ok"], result["error"]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_was_stored_outlives_the_broker(
    end: str, broker: "RunningBroker", java_scenarios: "JavaScenarios"
) -> None:
    before = java_scenarios.run("restart-before", broker.url)
    assert before["ok"], before["error"]
    getattr(broker, end)()
    broker.start()
    after = java_scenarios.run("restart-after", broker.url)
    assert after["ok"], after["error"]
