"""Connections and queues that do nothing: what they take of memory and time."""

import resource
import socket
import time
from collections.abc import Iterator
from typing import Any

from aims_common import Figure, Settings, broker, memory, wire
from loads import ANSWER, Wire, made
from measuring import usage
from others import Measured

from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.protocols.openwire.frames import framed

SETTLE_SECONDS = 3.0
IDLE_SECONDS = 20.0
LIFE_SIGNS_MS = 30_000
SIGN = made(openwire.KeepAliveInfo())
CONNECTION_BYTES_MAX = 8_000
CORE_SHARE_MAX = 0.01
QUEUE_BYTES_MAX = 1_500
QUEUES_SECONDS_MAX = 10.0
QUEUES_AT_ONCE = 200
SPARE_DESCRIPTORS, SPARE_DESTINATIONS = 100, 1000


def connections(settings: Settings) -> Iterator[Figure]:
    """Hold connections that have said who they are, and nothing since.

    First those that want no life signs, then as many with a Java client's default of 30 s.
    """
    wanted = settings.count + SPARE_DESCRIPTORS
    _have_descriptors(wanted)
    for inactivity, words in ((0, "silent"), (LIFE_SIGNS_MS, "with life signs")):
        listener = {"connectionsMax": wanted, "connectionsBeforeLoginMax": wanted}
        with broker(settings.directory / words, listener=listener) as running:
            process = running.running.process.pid
            held = [_connect(running, -1, inactivity)]
            before = memory(process)
            began = signed = time.monotonic()
            for number in range(settings.count):
                held.append(_connect(running, number, inactivity))
                if inactivity and time.monotonic() - signed > _sign_seconds(inactivity):
                    signed = time.monotonic()
                    for connection in held:
                        connection.sendall(SIGN)
            took = time.monotonic() - began
            _idle(held, inactivity, SETTLE_SECONDS)
            each = (memory(process) - before) / settings.count
            yield Figure(f"{words}, connected", settings.count / took, "a second")
            yield Figure(f"{words}, memory of each", each, "bytes", CONNECTION_BYTES_MAX)
            used, began = usage(process).cpu, time.monotonic()
            _idle(held, inactivity, IDLE_SECONDS)
            share = (usage(process).cpu - used) / (time.monotonic() - began)
            yield Figure(f"{words}, of a core", share, "ratio", CORE_SHARE_MAX)
            for connection in held:
                connection.close()


def _have_descriptors(wanted: int) -> None:
    """Let this process open that many files, or as many as it may already."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted > most:
        raise SystemExit(f"This process may open {most:,} files, and needs {wanted:,}.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), most))


def _sign_seconds(inactivity: int) -> float:
    """Return how long after a sign of life the next is due: a third of the allowed silence."""
    return inactivity / 3000


def _idle(held: list[socket.socket], inactivity: int, seconds: float) -> None:
    """Do nothing but give the life signs that were agreed on, three in each time."""
    ends = time.monotonic() + seconds
    while inactivity and time.monotonic() + _sign_seconds(inactivity) < ends:
        began = time.monotonic()
        for number, connection in enumerate(held):
            connection.sendall(SIGN)
            # One after the other, as those of clients that know nothing of each other.
            ahead = number / len(held) * _sign_seconds(inactivity) - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)
    time.sleep(max(ends - time.monotonic(), 0))


def _connect(running: Measured, number: int, inactivity: int) -> socket.socket:
    """Return a connection that was let in."""
    name = f"ID:idle-{number}"
    info = openwire.ConnectionInfo(
        command_id=1,
        response_required=True,
        connection_id=openwire.ConnectionId(name),
        client_id=name,
    )
    held = socket.create_connection(("127.0.0.1", running.running.port), 60)
    properties: dict[str, Any] = {
        "MaxInactivityDuration": inactivity,
        "MaxInactivityDurationInitalDelay": 10_000,
    }
    offer = openwire.WireFormatInfo(version=12, properties=properties)
    held.sendall(framed(openwire.encode(offer)) + made(info))
    received = b""
    while ANSWER not in _kinds(received):
        more = held.recv(4096)
        if not more:
            raise RuntimeError(f"the broker ended connection {number}")
        received += more
    return held


def _kinds(data: bytes) -> set[int]:
    """Return the kinds of all whole frames."""
    found, at = set(), 0
    while at + 4 < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if end <= len(data):
            found.add(data[at + 4])
        at = end
    return found


def _share_of_a_core(process: int) -> float:
    """Return how much of a core a process takes while nobody asks for anything."""
    before = usage(process).cpu
    time.sleep(IDLE_SECONDS)
    return (usage(process).cpu - before) / IDLE_SECONDS


def queues(settings: Settings) -> Iterator[Figure]:
    """Open queues by their names, without messages."""
    spec = {"limits": {"destinations": settings.count + SPARE_DESTINATIONS}}
    with broker(settings.directory / "lockkeeper", spec=spec) as running:
        process = running.running.process.pid
        opener = wire(running, "opener")
        _open(opener, "FIRST", QUEUES_AT_ONCE)
        before = memory(process)
        began = time.monotonic()
        _open(opener, "AIM", settings.count)
        yield Figure("opened", time.monotonic() - began, "s", QUEUES_SECONDS_MAX)
        each = (memory(process) - before) / settings.count
        yield Figure("memory of each", each, "bytes", QUEUE_BYTES_MAX)
        yield Figure("of a core while all are idle", _share_of_a_core(process), "ratio")
        opener.close()


def _open(opener: Wire, name: str, count: int) -> None:
    for first in range(0, count, QUEUES_AT_ONCE):
        numbers = range(first, min(first + QUEUES_AT_ONCE, count))
        opener.write(b"".join(made(_opened(opener.name, f"{name}.{each}")) for each in numbers))
        opener.read(ANSWER, len(numbers))


def _opened(connection: str, name: str) -> openwire.DestinationInfo:
    return openwire.DestinationInfo(
        command_id=1,
        response_required=True,
        connection_id=openwire.ConnectionId(connection),
        destination=queue(name),
        operation_type=openwire.DestinationOperation.ADD,
    )
