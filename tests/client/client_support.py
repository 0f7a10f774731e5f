"""What the client's tests share: shorthand for consuming, browsing and dead letters."""

import time
from collections.abc import Callable
from pathlib import Path

import brokers
import pytest
from ports import free_port

from lockkeeper.client import Connection, Consumer, ReceivedMessage
from lockkeeper.message.destination import queue

DEAD_LETTERS = "ActiveMQ.DLQ"
KINDS = [
    "lockkeeper",
    pytest.param("activemq", marks=pytest.mark.interop),
    pytest.param("activemq6", marks=[pytest.mark.interop, pytest.mark.thorough]),
]
"""The brokers that the client's contract holds for; those of ActiveMQ need Java."""
Connect = Callable[..., Connection]


def start_broker(kind: str, directory: Path) -> brokers.RunningBroker:
    """Start a broker beside whatever else runs on this machine."""
    port = free_port()
    command = brokers.COMMANDS[kind](directory, port)
    if kind == "lockkeeper":
        command += ["--admin", "127.0.0.1:0"]
    return brokers.RunningBroker(kind, port, directory, command)


def take(consumer: Consumer, count: int, seconds: float = 10) -> list[ReceivedMessage]:
    """Return the next messages, *count* of them if they come in time."""
    received = [consumer.receive(seconds) for _ in range(count)]
    return [message for message in received if message is not None]


def bodies(consumer: Consumer, count: int, seconds: float = 10) -> list[object]:
    """Return the bodies of the next messages, *count* of them if they come in time."""
    return [message.body for message in take(consumer, count, seconds)]


def left(connection: Connection, queue_name: str) -> list[object]:
    """Return the bodies of what a queue holds."""
    return [message.body for message in connection.session().browse(queue_name)]


def dead_letters(connection: Connection, queue_name: str) -> list[ReceivedMessage]:
    """Return the dead letters that came from a queue, once there are some."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        found = [
            message
            for message in connection.session().browse(DEAD_LETTERS)
            if message.original_destination == queue(queue_name)
        ]
        if found:
            return found
        time.sleep(0.05)
    return []
