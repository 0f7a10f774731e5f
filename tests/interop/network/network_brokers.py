"""Networks of real brokers on loopback: ours, ActiveMQ, or both, connected in any way.

A connector is written once, with ActiveMQ's names, for whichever broker is to have it. Between two
brokers there may be a relay, which can be cut.
"""

import json
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import brokers
import pytest
import yaml
from ports import free_port

import lockkeeper.client as client
from lockkeeper.message.openwire import ConsumerInfo, RemoveInfo

PAIRS = (
    ("ours", "ours"),
    ("ours", "activemq"),
    ("activemq", "ours"),
    pytest.param(("activemq", "activemq"), marks=pytest.mark.thorough),
    pytest.param(("ours", "activemq6"), marks=pytest.mark.thorough),
    pytest.param(("activemq6", "ours"), marks=pytest.mark.thorough),
)
"""Who dials whom."""
PATIENCE_SECONDS = 240
RECEIVE_BYTES = 1 << 16
REPLAYS = {"match": ">", "kind": "Queue", "networkBridgeFilter": {"replayWhenNoConsumers": True}}
ACTIVEMQ_REPLAYS = """<policyEntries><policyEntry queue=">" enableAudit="false">
<networkBridgeFilterFactory><conditionalNetworkBridgeFilterFactory replayWhenNoConsumers="true"/>
</networkBridgeFilterFactory></policyEntry>"""
COMPOSITES = (
    ("queue://IN", "queue://OUT"),
    ("topic://TOLD", "queue://HEARD"),
    ("topic://WIRE", "topic://NEWS"),
)
"""Composite destinations of a broker with virtual ones, and where each forwards to."""
DESTINATION_LISTS = (
    "dynamicallyIncludedDestinations",
    "excludedDestinations",
    "staticallyIncludedDestinations",
)


@dataclass
class Member:
    """A broker of a network: its kind, its name, and the port that clients dial.

    One that `replays` sends messages back whose consumers have left; `tells` are options of its
    listener by ActiveMQ's names, for what clients are told of other brokers. `virtual` are flags
    of the broker about its virtual destinations; with any of them it has `COMPOSITES`.
    """

    kind: str
    name: str
    directory: Path
    replays: bool = False
    tells: dict[str, Any] = field(default_factory=dict)
    virtual: tuple[str, ...] = ()
    connectors: list[dict[str, Any]] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    admin: int = field(default_factory=free_port)
    running: brokers.RunningBroker | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"tcp://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process, or start it again."""
        if self.running is None:
            command = COMMANDS[self.kind](self)
            self.running = brokers.RunningBroker(
                self.kind, self.port, self.directory, command, start_seconds_max=PATIENCE_SECONDS
            )
        else:
            self.running.start()

    def kill(self) -> None:
        """Kill the process as a crash would."""
        assert self.running is not None
        self.running.kill()

    def stop(self) -> None:
        """Stop the process."""
        if self.running is not None and self.running.process.poll() is None:
            self.running.stop()

    def bridges(self) -> list[dict[str, Any]]:
        """Return what our own broker says of its bridges."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/api/v1/status") as answer:
            status: dict[str, Any] = json.load(answer)
        found: list[dict[str, Any]] = status["bridges"]
        return found


def _ours(member: Member) -> list[str]:
    resource: dict[str, Any] = {
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "Broker",
        "metadata": {"name": member.name},
        "spec": {
            "networkConnectors": [_for_ours(each) for each in member.connectors],
            "destinationPolicies": [REPLAYS] if member.replays else [],
        },
    }
    if member.virtual:
        resource["spec"] |= dict.fromkeys(member.virtual, True)
        resource["spec"]["compositeDestinations"] = [_composite(*each) for each in COMPOSITES]
    if member.tells:
        listener = {"name": "openwire", "port": member.port, "advertisedUrls": [member.url]}
        resource["spec"]["listeners"] = [listener | member.tells]
    member.directory.mkdir(parents=True, exist_ok=True)
    written = member.directory / "broker.yaml"
    written.write_text(yaml.safe_dump(resource))
    return [
        *brokers.LOCKKEEPER,
        *("broker", "--data", str(member.directory / "data"), "-f", str(written)),
        *(() if member.tells else ("--listen", f"openwire://127.0.0.1:{member.port}")),
        *("--admin", f"127.0.0.1:{member.admin}"),
    ]


def _for_ours(connector: Mapping[str, Any]) -> dict[str, Any]:
    said = dict(connector)
    for name in DESTINATION_LISTS:
        if name in said:
            said[name] = [_destination(each) for each in said[name]]
    return said


def _destination(text: str) -> dict[str, Any]:
    scheme, _, name = text.partition("://")
    name, _, option = name.partition("?")
    said: dict[str, Any] = {"kind": scheme.capitalize(), "name": name}
    return said | ({"forceDurable": True} if option else {})


def _composite(source: str, target: str) -> dict[str, Any]:
    kind, _, name = target.partition("://")
    return _destination(source) | {"forwardTo": [{kind: name}]}


def _activemq(member: Member) -> list[str]:
    command = brokers.activemq_command(member.directory, member.port)
    written = member.directory / "activemq.xml"
    text = written.read_text().replace('brokerName="localhost"', f'brokerName="{member.name}"')
    if member.replays:
        text = text.replace("<policyEntries>", ACTIVEMQ_REPLAYS)
    if member.virtual:
        flags = " ".join(_attribute(each, True) for each in member.virtual)
        text = text.replace("<broker ", f"<broker {flags} ")
        text = text.replace("<destinationPolicy>", f"{_interceptors()}<destinationPolicy>")
    attributes = " ".join(_attribute(*each) for each in member.tells.items())
    text = text.replace("<transportConnector ", f"<transportConnector {attributes} ")
    said = "".join(map(_element, member.connectors))
    if said:
        text = text.replace(
            "<persistenceAdapter>",
            f"<networkConnectors>{said}</networkConnectors><persistenceAdapter>",
        )
    written.write_text(text)
    return command


def _element(connector: Mapping[str, Any]) -> str:
    lists = {name: connector[name] for name in DESTINATION_LISTS if name in connector}
    plain = {name: value for name, value in connector.items() if name not in lists}
    words = (_attribute(name, value) for name, value in plain.items())
    inner = "".join(
        f"<{name}>{''.join(map(_destination_element, entries))}</{name}>"
        for name, entries in lists.items()
    )
    return f"<networkConnector {' '.join(words)}>{inner}</networkConnector>"


def _interceptors() -> str:
    composites = (
        f"<composite{_destination(source)['kind']} name={quoteattr(_destination(source)['name'])}>"
        f"<forwardTo>{_destination_element(target)}</forwardTo>"
        f"</composite{_destination(source)['kind']}>"
        for source, target in COMPOSITES
    )
    rules = f'<virtualTopic name="VirtualTopic.&gt;"/>{"".join(composites)}'
    inner = f"<virtualDestinations>{rules}</virtualDestinations>"
    return (
        f"<destinationInterceptors><virtualDestinationInterceptor>{inner}"
        "</virtualDestinationInterceptor></destinationInterceptors>"
    )


def _attribute(name: str, value: object) -> str:
    return f"{name}={quoteattr(str(value).lower() if isinstance(value, bool) else str(value))}"


def _destination_element(text: str) -> str:
    scheme, _, name = text.partition("://")
    return f"<{scheme} physicalName={quoteattr(name)}/>"


def _activemq6(member: Member) -> list[str]:
    _activemq(member)
    return brokers.configured_activemq6_command(member.directory / "activemq.xml")


COMMANDS: dict[str, Callable[[Member], list[str]]] = {
    "ours": _ours,
    "activemq": _activemq,
    "activemq6": _activemq6,
}


def missing(*kinds: str) -> str | None:
    """Return why brokers of these kinds cannot be started on this machine, or None."""
    reasons = (brokers.missing(kind) for kind in kinds if kind != "ours")
    return next((reason for reason in reasons if reason), None)


class Relay:
    """Passes bytes on to *port*; `cut` ends all connections, and none is let in while `is_cut`."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.is_cut = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.is_cut:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    near.close()
                    continue
                self._pairs.append((near, far))
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()

    def cut(self) -> None:
        """End all connections at once."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for each in pair:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.close()
        self.cut()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(RECEIVE_BYTES):
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class Network:
    """Brokers by their names; started in the order in which they were added."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self.members: dict[str, Member] = {}
        self.relays: dict[tuple[str, str], Relay] = {}

    def __enter__(self) -> "Network":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for member in self.members.values():
            member.stop()
        for relay in self.relays.values():
            relay.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    def add(
        self,
        kind: str,
        name: str,
        replays: bool = False,
        tells: dict[str, Any] | None = None,
        virtual: tuple[str, ...] = (),
    ) -> Member:
        """Add a broker; it does not run yet."""
        member = self.members[name] = Member(
            kind, name, self._directory / name, replays, tells or {}, virtual
        )
        return member

    def bridge(self, source: str, target: str, **options: Any) -> Relay:
        """Have one broker dial another, by a relay, with options by ActiveMQ's names."""
        relay = self.relays[source, target] = Relay(self.members[target].port)
        quick = "initialReconnectDelay=200&maxReconnectDelay=500&minConnectTime=200"
        uri = f"static:(tcp://127.0.0.1:{relay.port})?{quick}"
        connector = {"name": f"to-{target}", "uri": uri, **options}
        self.members[source].connectors.append(connector)
        return relay

    def start(self) -> "Network":
        """Start all brokers, the dialled ones first."""
        for member in reversed(self.members.values()):
            member.start()
        return self

    def session(
        self, name: str, client_id: str | None = None, transacted: bool = False
    ) -> client.Session:
        """Return a session of a client at a broker; it lives as long as the network."""
        return self.connected(name, client_id).session(transacted=transacted)

    def connected(self, name: str, client_id: str | None = None) -> client.Connection:
        """Return a connection of a client at a broker."""
        opened = client.connect(self[name].url, client_id, timeout=PATIENCE_SECONDS)
        return self._stack.enter_context(opened)

    def await_demand(self, name: str, destination: str, count: int = 1) -> None:
        """Wait until a broker has *count* bridges' consumers of a destination."""
        with client.connect(self[name].url, timeout=PATIENCE_SECONDS) as connection:
            listener = connection.session().consumer(f"topic://{_advisories(destination)}")
            found: set[str] = set()
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(found) < count:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{name} has no bridge's consumer of {destination}")
                message = listener.receive(0.5)
                news = None if message is None else message.fields.data_structure
                if isinstance(news, ConsumerInfo) and news.network_subscription:
                    found.add(str(news.consumer_id))
                elif isinstance(news, RemoveInfo):
                    found.discard(str(news.object_id))

    def await_no_demand(self, name: str, destination: str) -> None:
        """Wait until a broker has no bridge's consumer of a destination any more."""
        until(lambda: not self.demand(name, destination), f"{name} forwards no {destination}")

    def demand(self, name: str, destination: str) -> list[ConsumerInfo]:
        """Return the bridges' consumers that a broker has of a destination."""
        with client.connect(self[name].url, timeout=PATIENCE_SECONDS) as connection:
            listener = connection.session().consumer(f"topic://{_advisories(destination)}")
            found = []
            while (message := listener.receive(0.3)) is not None:
                news = message.fields.data_structure
                if isinstance(news, ConsumerInfo) and news.network_subscription:
                    found.append(news)
            return found


def _advisories(destination: str) -> str:
    scheme, _, name = destination.partition("://")
    kind = "Queue" if scheme.endswith("queue") else "Topic"
    return f"ActiveMQ.Advisory.Consumer.{kind}.{name}"


def bodies(consumer: client.Consumer, count: int, quiet: float = 1.0) -> list[Any]:
    """Return what comes: *count* messages, waited for, and what comes after them in *quiet* s."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count and time.monotonic() < deadline:
        if (message := consumer.receive(1)) is not None:
            found.append(message.body)
    while (message := consumer.receive(quiet)) is not None:
        found.append(message.body)
    return found


def shared(takers: Sequence[client.Consumer], count: int, quiet: float = 0.3) -> list[list[Any]]:
    """Return what comes to each of several consumers: *count* messages in all, waited for.

    What comes after them in *quiet* s is returned, too.
    """
    found: list[list[Any]] = [[] for _ in takers]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sum(map(len, found)) < count and time.monotonic() < deadline:
        for taker, each in zip(takers, found, strict=True):
            if (message := taker.receive(0.05)) is not None:
                each.append(message.body)
    for taker, each in zip(takers, found, strict=True):
        each += bodies(taker, 0, quiet)
    return found


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait until *condition* holds, and return what it gives. Raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain until {what}")
        time.sleep(0.05)
