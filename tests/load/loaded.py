"""Brokers with little memory, and clients that wait for no answer, or read none."""

import socket
import threading
import time
from pathlib import Path

import brokers
from ports import free_port

from lockkeeper import client as lockkeeper_client
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.ids import MessageId
from lockkeeper.message.openwire import (
    ActiveMQBytesMessage,
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    SessionId,
    SessionInfo,
    encode,
)
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.settings import ListenerSettings

LIMIT_MIB = 64
BROKER = f"""
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {{{{name: loaded}}}}
spec:
  listeners: [{{{{name: openwire, port: {{port}}}}}}]
  admin: {{{{port: 0}}}}
  systemUsage: {{{{memoryUsage: {{{{limit: {LIMIT_MIB}Mi}}}}, tempUsage: {{{{limit: {{temp}}}}}}}}}}
"""


class Loaded:
    """A broker process; `peak` is the most memory it ever had, in MiB."""

    def __init__(self, home: Path, temp: str, start_seconds_max: float) -> None:
        self.port = free_port()
        self.data = home / "data"
        resource = home / "broker.yaml"
        resource.write_text(BROKER.format(port=self.port, temp=temp))
        command = [
            *brokers.LOCKKEEPER, "broker", "-f", str(resource), "--data", str(self.data)
        ]  # fmt: skip
        self.process = brokers.RunningBroker(
            "lockkeeper", self.port, home, command, True, start_seconds_max
        )
        self.url = f"failover:(tcp://127.0.0.1:{self.port})"
        self.stopping = threading.Event()
        self.sent = 0
        self._connections: list[lockkeeper_client.Connection] = []
        self._threads: list[threading.Thread] = []

    @property
    def peak(self) -> int:
        status = Path(f"/proc/{self.process.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) // 1024

    def connect(self) -> lockkeeper_client.Connection:
        return lockkeeper_client.connect(self.url)

    def flood(self, to: str, size: int, persistent: bool = True, block: int = 100) -> None:
        """Send to a destination for as long as the test lasts, and wait for nothing."""
        connection = self.connect()
        self._connections.append(connection)
        thread = threading.Thread(
            target=self._flood, args=(connection, to, size, persistent, block), daemon=True
        )
        thread.start()
        self._threads.append(thread)

    def _flood(
        self,
        connection: lockkeeper_client.Connection,
        to: str,
        size: int,
        persistent: bool,
        block: int,
    ) -> None:
        producer = connection.session().producer(to)
        number = 0
        try:
            while not self.stopping.is_set():
                frames = []
                for _ in range(block):
                    number += 1
                    message = ActiveMQBytesMessage(
                        producer_id=producer.identifier,
                        destination=parse_destination(to),
                        message_id=MessageId(producer.identifier, number),
                        persistent=persistent,
                        content=bytes(size),
                    )
                    frame = encode(message)
                    frames.append(len(frame).to_bytes(4, "big") + frame)
                self._send_frames(connection, b"".join(frames))
                self.sent += block
        except Exception:
            if not self.stopping.is_set():
                raise

    def listen_and_read_nothing(
        self, number: int, source: str, subscription: str | None = None, prefetch: int = 1000
    ) -> socket.socket:
        """Open a consumer, durable with a *subscription*, on a socket that nobody reads."""
        name = f"ID:silent-{number}"
        session, consumer = SessionId(name, 1), ConsumerId(name, 1, 1)
        link = socket.create_connection(("127.0.0.1", self.port))
        link.sendall(framed(encode(offer(ListenerSettings(inactivity_duration=0)))))
        for command in (
            ConnectionInfo(connection_id=ConnectionId(name), client_id=name),
            SessionInfo(session_id=session),
            ConsumerInfo(
                consumer_id=consumer,
                destination=parse_destination(source),
                prefetch_size=prefetch,
                client_id=name,
                subscription_name=subscription,
                dispatch_async=True,
            ),
        ):
            link.sendall(framed(encode(command)))
        return link

    def last(self, seconds: float) -> None:
        """Let the load go on, as long as the broker lives."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.process.poll() is None
            time.sleep(0.1)

    def serves(self) -> bool:
        """Tell whether somebody else's messages are stored and delivered."""
        with self.connect() as connection:
            session = connection.session()
            session.producer("OTHERS").send("hello")
            received = session.consumer("OTHERS").receive(timeout=60)
            return received is not None and received.body == "hello"

    def end(self) -> None:
        """Kill the broker, and let go of everything that has used it."""
        self.stopping.set()
        self.process.kill()
        for thread in self._threads:
            thread.join()
        for connection in self._connections:
            connection.close(timeout=0.1)

    def _send_frames(self, connection: lockkeeper_client.Connection, data: bytes) -> None:
        """Send what a client has not made, as fast as the broker reads, until the end."""
        runner = connection._runner
        while runner.core.outbox.is_full:
            if self.stopping.wait(0.001):
                return
        with runner.lock:
            runner.core.outbox.put_frame(data)
            runner.flush(True)
