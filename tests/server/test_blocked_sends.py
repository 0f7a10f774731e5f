"""Sends that wait for room are told: in the status, and in the log."""

import logging
import time

import pytest

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import MESSAGE_BYTES
from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQBytesMessage
from lockkeeper.message.rewrite import encoded
from lockkeeper.server.flow_log import FlowLog
from lockkeeper.server.views import master_view
from lockkeeper.store.memory import MemoryStore

NOW = time.time_ns() // 1_000_000
PRODUCER = ProducerId("ID:producer-1:1", 1, 1)


@pytest.fixture
def broker() -> Broker:
    """Return a broker where a send to Q waits."""
    policy = DestinationPolicy(
        memory_limit=1, flow=FlowPolicy(blocked_producer_warning_interval=5_000)
    )
    policies = PolicyMap([PolicyEntry("Q", None, policy)])
    broker = Broker(MemoryStore(), "b", "ID:b", policies, BrokerSettings(), NOW)
    broker.recover()
    connection = Connection(broker.dirty, "tcp://10.0.0.1:5000")
    broker.connect(connection, "ID:producer-1:1", "app")
    for number in range(2):
        message = ActiveMQBytesMessage(
            producer_id=PRODUCER,
            destination=queue("Q"),
            message_id=MessageId(PRODUCER, number),
            content=b"hello",
        )
        broker.send(connection, encoded(message, number), None)
    broker.tick(NOW)
    return broker


def test_the_status_lists_what_waits(broker: Broker) -> None:
    (blocked,) = master_view(broker, broker.store)["blockedSends"]
    used = broker.memory.used
    assert blocked == {
        "destination": "queue://Q",
        "persistent": False,
        "limit": "memoryLimit",
        "since": NOW,
        "sends": 1,
        "bytes": used - MESSAGE_BYTES,
        "connections": [{"clientId": "app", "address": "tcp://10.0.0.1:5000", "isRead": True}],
        "heldBy": [{"destination": "queue://Q", "memoryBytes": used}],
    }


def test_the_log_says_so_now_and_then_and_once_more_when_it_is_over(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    log = FlowLog(broker)
    for later in (0, 500, 4_999, 5_000):
        log.log_waiting_sends(NOW + later, NOW + later)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2
    assert "1 sends to queue://Q have waited for 5000 ms: memoryLimit is used up" in warnings[1]
    assert f"queue://Q {broker.memory.used}" in warnings[1]
    for connection in list(broker.connections.values()):
        broker.disconnect(connection)
    for _ in range(2):
        log.log_waiting_sends(NOW + 6_000, NOW + 6_000)
    assert "sends to queue://Q no longer wait" in caplog.records[-1].getMessage()
    assert len(caplog.records) == 3
