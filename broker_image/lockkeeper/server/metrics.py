"""Figures for Prometheus, in its text format: what the status and the destinations say.

Counters begin anew with every master, as Prometheus expects of a process that starts anew.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from lockkeeper.journal.counters import COUNTERS
from lockkeeper.server.roles import FENCED, MASTER, RECOVERING, STANDBY, STARTING, STOPPED

ROLES = (STARTING, STANDBY, FENCED, RECOVERING, MASTER, STOPPED)
DESTINATIONS_MAX = 5_000
"""Largest number of destinations with figures of their own: the deepest ones.

So a broker with more destinations does not flood Prometheus.
"""
OTHERS = "(others)"
"""Name of the sum over all other destinations, by kind; its members may change."""

View: TypeAlias = dict[str, Any]
Labels: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """One figure: its name, its help, its values by labels."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    values: tuple[tuple[Labels, float], ...]


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure of a destination, and its key in the view."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    key: str


_OF_DESTINATIONS = (
    _Figure("messages", "gauge", "Messages in the destination, with those in flight.", "depth"),
    _Figure("in_flight", "gauge", "Messages sent to consumers and not yet acknowledged.",
            "inFlight"),
    _Figure("consumers", "gauge", "Consumers of the destination.", "consumers"),
    _Figure("memory_bytes", "gauge", "Bytes of memory that its messages take.", "memoryBytes"),
    *(
        _Figure(f"{counter.name}_total", "counter", f"{counter.meaning.capitalize()}.",
                counter.json_name)
        for counter in COUNTERS
    ),
)  # fmt: skip


def families(status: View, destinations: Iterable[View]) -> Iterator[Family]:
    """Yield the figures of a process; only a master has *destinations*."""
    yield from _of_process(status)
    if status["role"] == MASTER:
        yield from _of_master(status)
        yield from _of_the_door(status)
        yield from _of_bridges(status)
        yield from _of_destinations(destinations)


def exposition(found: Iterable[Family]) -> str:
    """Return figures as Prometheus reads them."""
    return "\n".join(exposition_lines(found)) + "\n"


def exposition_lines(found: Iterable[Family]) -> Iterator[str]:
    """Yield the lines of `exposition`."""
    for family in found:
        yield from (f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}")
        for labels, value in family.values:
            inner = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
            yield f"{family.name}{{{inner}}} {_number(value)}"


def _of_process(status: View) -> Iterator[Family]:
    broker = (("broker", str(status["broker"])),)
    about = (*broker, ("replica", str(status["replica"])), ("version", str(status["version"])))
    yield Family(
        "lockkeeper_info",
        "gauge",
        "Names of broker and replica, and the release; always 1.",
        ((about, 1),),
    )
    roles = tuple(((*broker, ("role", role)), float(role == status["role"])) for role in ROLES)
    yield Family(
        "lockkeeper_role",
        "gauge",
        "Role of the process: 1 for the present role, 0 for all others.",
        roles,
    )
    refused = float(status.get("refusal") is not None)
    said = "1 while a new configuration is refused and the previous one stays in use, else 0."
    yield Family("lockkeeper_configuration_refused", "gauge", said, ((broker, refused),))
    count = float(len(status.get("secretsRefused", ())))
    said = "Secrets that cannot be read; their previous versions stay in use."
    yield Family("lockkeeper_secrets_refused", "gauge", said, ((broker, count),))
    for name, meaning, value in (
        (
            "takes_over",
            "1 for a standby that was proven able to take over, else 0.",
            status["takesOver"],
        ),
        (
            "role_since_seconds",
            "Time of the last change of role, in seconds since 1970.",
            status["since"],
        ),
        ("epoch", "Number of the master's term.", status["epoch"]),
        (
            "lease_silence_seconds",
            "Seconds since the Lease was last seen to change.",
            _silence(status),
        ),
    ):
        if value is not None:
            yield _single(status, f"lockkeeper_{name}", meaning, value)


def _silence(status: View) -> float | None:
    """Return the age of the Lease's last sign of life in seconds, None without a Lease."""
    renewed_ago = (status["lease"] or {}).get("renewedAgo")
    return None if renewed_ago is None else renewed_ago / 1000


def _of_master(status: View) -> Iterator[Family]:
    memory, store = status["memory"], status["store"]
    blocked = sum(each["sends"] for each in status["blockedSends"])
    for name, meaning, value in (
        ("connections", "Connections of clients.", status["connections"]),
        ("memory_bytes", "Bytes of memory that messages take.", memory["used"]),
        ("memory_limit_bytes", "Bytes of memory that messages may take.", memory["limit"]),
        ("journal_files", "Files of the journal.", store["files"]),
        ("journal_bytes", "Bytes of the journal.", store["bytes"]),
        ("spooled_bytes", "Bytes of messages in temporary files.", store["spooledBytes"]),
        ("store_waiting_operations", "Operations that wait for the disk.",
         store["waitingOperations"]),
        ("blocked_sends", "Sends that wait for room.", blocked),
        ("prepared_transactions", "XA transactions in doubt.",
         len(status["preparedTransactions"])),
    ):  # fmt: skip
        yield _single(status, f"lockkeeper_{name}", meaning, value)
    yield _contained(status)


def _contained(status: View) -> Family:
    counts = status["containedErrors"]["counts"]
    values = tuple(((("kind", kind),), float(count)) for kind, count in sorted(counts.items()))
    said = "Unexpected errors that were contained, by their kind."
    return Family("lockkeeper_contained_errors_total", "counter", said, values)


def _of_the_door(status: View) -> Iterator[Family]:
    said, before = "Connections that have not logged in.", status["connectionsBeforeLogin"]
    yield _single(status, "lockkeeper_connections_before_login", said, before)
    broker = ("broker", str(status["broker"]))
    counts = tuple(
        ((broker, ("reason", reason)), float(count))
        for reason, count in status["connectionsTurnedAway"].items()
    )
    said = "Connections that were turned away, by the reason."
    yield Family("lockkeeper_connections_turned_away_total", "counter", said, counts)


_OF_BRIDGES = (
    ("connected", "gauge", "1 while the bridge has its other broker, else 0.", "connected"),
    ("unconfirmed", "gauge", "Messages forwarded and not yet confirmed.", "unconfirmed"),
    ("lag_seconds", "gauge", "Age of the oldest message that is not yet confirmed.", "lag"),
    ("waiting", "gauge", "Messages that wait for consumers of the other broker, too.", "waiting"),
    ("enqueued_total", "counter", "Messages taken to be forwarded.", "enqueued"),
    ("dequeued_total", "counter", "Messages forwarded and confirmed.", "dequeued"),
    ("forwarded_bytes_total", "counter", "Bytes of forwarded messages.", "bytes"),
    ("stranded", "gauge", "Messages that neither a consumer nor a bridge takes.", "stranded"),
    ("replayed_total", "counter", "Messages sent back to a broker they had left.", "replayed"),
    ("received_total", "counter", "Messages that came over the bridge.", "received"),
    ("duplicates_total", "counter", "Messages that had come over it before.", "duplicates"),
)


def _of_bridges(status: View) -> Iterator[Family]:
    """Yield the figures of bridges; of none without network connectors.

    One that another broker dialled goes by that broker's name: its address is another each time.
    """
    bridges = status.get("bridges", ())
    broker = ("broker", str(status["broker"]))
    for name, kind, said, key in _OF_BRIDGES if bridges else ():
        values: Counter[Labels] = Counter()
        for bridge in bridges:
            peer = bridge["address"] if bridge["initiator"] else str(bridge["broker"])
            labels = (broker, ("bridge", str(bridge["name"])), ("peer", str(peer)))
            values[labels] += _figure_of(bridge, key)
        told = tuple((labels, _in_unit(key, value)) for labels, value in values.items())
        yield Family(f"lockkeeper_bridge_{name}", cast("Any", kind), said, told)


def _figure_of(bridge: View, key: str) -> int:
    return int(bridge["state"] == "connected") if key == "connected" else int(bridge[key])


def _in_unit(key: str, value: int) -> float:
    """Return a figure in the unit of its metric: times are in seconds there."""
    return value / 1000 if key == "lag" else value


def _of_destinations(destinations: Iterable[View]) -> Iterator[Family]:
    views = [view for view in destinations if not view["temporary"]]
    views.sort(key=lambda view: view["depth"], reverse=True)
    left_out = max(0, len(views) - DESTINATIONS_MAX)
    yield Family("lockkeeper_destinations_left_out", "gauge",
                 "Destinations without figures of their own.", (((), left_out),))  # fmt: skip
    told = views[:DESTINATIONS_MAX]
    rest = views[DESTINATIONS_MAX:]
    for figure in _OF_DESTINATIONS:
        values: list[tuple[Labels, float]] = [
            ((("destination", view["name"]), ("kind", view["kind"])), view[figure.key])
            for view in told
        ]
        values += _sums(rest, figure.key)
        name = f"lockkeeper_destination_{figure.name}"
        yield Family(name, figure.kind, figure.help, tuple(values))


def _sums(views: list[View], key: str) -> Iterator[tuple[Labels, float]]:
    """Yield one value a kind for all *views* together."""
    for kind in sorted({view["kind"] for view in views}):
        total = sum(view[key] for view in views if view["kind"] == kind)
        yield (("destination", OTHERS), ("kind", kind)), total


def _single(status: View, name: str, meaning: str, value: float) -> Family:
    return Family(name, "gauge", meaning, (((("broker", str(status["broker"])),), float(value)),))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
