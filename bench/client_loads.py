"""A process that sends or receives as fast as one client library of Python can; see clients.py.

`client_loads.py CLIENT URL NAME sends|receives WARM_UP COUNT` prints one line of JSON: seconds, CPU
seconds and the most memory in MB for COUNT messages of 1 KiB, after WARM_UP that do not count.
"""

import asyncio
import json
import resource
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

BODY = bytes(1024)
RECEIVE_SECONDS_MAX = 120
PREFETCH = 1000


class Meter:
    """The clocks of this process, from `start` to `tell`."""

    def start(self) -> None:
        """Begin to count."""
        self._cpu, self._began = _cpu(), time.perf_counter()

    def tell(self) -> dict[str, float]:
        """Return what was used."""
        return {
            "seconds": time.perf_counter() - self._began,
            "cpu_seconds": _cpu() - self._cpu,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Client(ABC):
    """A connected client of one library."""

    @abstractmethod
    def sender(self, name: str, is_topic: bool) -> Callable[[], object]:
        """Return what sends one message that nobody confirms."""

    @abstractmethod
    def settle(self) -> None:
        """Send one message more, and return when the broker has taken it and all before it."""

    @abstractmethod
    def receive(self, name: str, count: int, begin: Callable[[], None], warm_up: int) -> None:
        """Receive *count* messages, each acknowledged; call *begin* after the first *warm_up*."""


class Blocking(Client):
    """Lockkeeper's client, calls that wait."""

    def __init__(self, url: str) -> None:
        from lockkeeper.client import connect

        self._session = connect(url).session()

    def sender(self, name: str, is_topic: bool) -> Callable[[], object]:
        self._producer = self._session.producer(f"{'topic' if is_topic else 'queue'}://{name}")
        self._producer.persistent = False
        return lambda: self._producer.send(BODY)

    def settle(self) -> None:
        self._producer.send(BODY, persistent=True, timeout=RECEIVE_SECONDS_MAX)

    def receive(self, name: str, count: int, begin: Callable[[], None], warm_up: int) -> None:
        with self._session.consumer(name) as consumer:
            for number in range(count):
                if number == warm_up:
                    begin()
                if consumer.receive(RECEIVE_SECONDS_MAX) is None:
                    raise TimeoutError(f"message {number} does not come")


class Stomp(Client):
    """stomp.py, with its listener in its own thread."""

    def __init__(self, url: str) -> None:
        import stomp

        self._listener = stomp.ConnectionListener
        where = urlsplit(url)
        self._connection = stomp.Connection12([(where.hostname, where.port)])
        self._connection.connect(wait=True)

    def sender(self, name: str, is_topic: bool) -> Callable[[], object]:
        self._target = f"/{'topic' if is_topic else 'queue'}/{name}"
        return lambda: self._connection.send(self._target, BODY)

    def settle(self) -> None:
        settled = threading.Event()

        class Settled(self._listener):  # type: ignore[misc, name-defined]
            def on_receipt(self, frame: Any) -> None:
                settled.set()

        self._connection.set_listener("settled", Settled())
        self._connection.send(self._target, BODY, headers={"receipt": "settled"})
        _wait(settled)

    def receive(self, name: str, count: int, begin: Callable[[], None], warm_up: int) -> None:
        done, received = threading.Event(), 0

        class Counting(self._listener):  # type: ignore[misc, name-defined]
            def on_message(self, frame: Any) -> None:
                nonlocal received
                if received == warm_up:
                    begin()
                received += 1
                if received == count:
                    done.set()

        self._connection.set_listener("counting", Counting())
        headers = {"activemq.prefetchSize": str(PREFETCH)}
        self._connection.subscribe(f"/queue/{name}", "1", ack="auto", headers=headers)
        _wait(done)


class Pika(Client):
    """pika's blocking connection; a topic is a fanout exchange with no queue."""

    def __init__(self, url: str) -> None:
        import pika

        where = urlsplit(url)
        parameters = pika.ConnectionParameters(where.hostname, where.port)
        self._connection = pika.BlockingConnection(parameters)
        self._channel = self._connection.channel()

    def sender(self, name: str, is_topic: bool) -> Callable[[], object]:
        exchange, key = ("amq.fanout", "") if is_topic else ("", name)
        self._channel.queue_declare(name)
        publish = self._channel.basic_publish
        self._send: Callable[[], object] = lambda: publish(exchange, key, BODY)
        return self._send

    def settle(self) -> None:
        self._send()
        self._channel.queue_declare("settled")

    def receive(self, name: str, count: int, begin: Callable[[], None], warm_up: int) -> None:
        received = 0

        def take(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            nonlocal received
            if received == warm_up:
                begin()
            received += 1
            channel.basic_ack(method.delivery_tag)
            if received == count:
                channel.stop_consuming()

        self._channel.basic_qos(prefetch_count=PREFETCH)
        self._channel.basic_consume(name, take)
        self._channel.start_consuming()


def _wait(event: threading.Event) -> None:
    if not event.wait(RECEIVE_SECONDS_MAX):
        raise TimeoutError(f"nothing came in {RECEIVE_SECONDS_MAX} s")


def run(client: Client, name: str, what: str, warm_up: int, count: int) -> dict[str, float]:
    """Send or receive, and return what the meter tells."""
    meter = Meter()
    send = client.sender(name, is_topic=what == "sends")
    if what == "sends":
        for number in range(warm_up + count):
            if number == warm_up:
                client.settle()
                meter.start()
            send()
        client.settle()
    else:
        for _ in range(warm_up + count - 1):
            send()
        client.settle()
        client.receive(name, warm_up + count, meter.start, warm_up)
    return meter.tell()


async def run_asyncio(url: str, name: str, what: str, warm_up: int, count: int) -> dict[str, float]:
    """Do the same with the coroutines of Lockkeeper's client."""
    from lockkeeper.client.aio import connect

    meter = Meter()
    async with await connect(url) as connection:
        session = connection.session()
        target = f"{'topic' if what == 'sends' else 'queue'}://{name}"
        producer = await session.producer(target)
        producer.persistent = False
        for number in range(warm_up + count - (what == "receives")):
            if number == warm_up and what == "sends":
                await producer.send(BODY, persistent=True)
                meter.start()
            await producer.send(BODY)
        await producer.send(BODY, persistent=True)
        if what == "receives":
            consumer = await session.consumer(target)
            for number in range(warm_up + count):
                if number == warm_up:
                    meter.start()
                if await consumer.receive(RECEIVE_SECONDS_MAX) is None:
                    raise TimeoutError(f"message {number} does not come")
        return meter.tell()


CLIENTS: dict[str, Callable[[str], Client]] = {
    "lockkeeper": Blocking,
    "stomp.py": Stomp,
    "pika": Pika,
}
ASYNCIO = "lockkeeper-asyncio"


def main() -> None:
    """Run one load."""
    kind, url, name, what, warm_up, count = sys.argv[1:]
    if kind == ASYNCIO:
        told = asyncio.run(run_asyncio(url, name, what, int(warm_up), int(count)))
    else:
        told = run(CLIENTS[kind](url), name, what, int(warm_up), int(count))
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
