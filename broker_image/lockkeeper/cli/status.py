"""`lockkeeper status`: who of a Broker's replicas is the master, and how it is doing."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from lockkeeper.cli.admin import SILENT, AdminAddresses, AdminError, AdminToken, Status, replicas
from lockkeeper.cli.errors import FAILED
from lockkeeper.cli.output import Column, Listing, counted, duration_text, show, size_text, watch
from lockkeeper.server.roles import MASTER, RECOVERING

COLUMNS = (
    Column("Replica"),
    Column("Role"),
    Column("For", number=True),
    Column("Process", number=True),
    Column("Clients", number=True),
    Column("Memory", number=True),
    Column("Journal", number=True),
    Column("Admin"),
)
STYLES = {MASTER: "green", SILENT: "red", RECOVERING: "yellow"}

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Repeat every second until Ctrl-C.")]


def status(
    admin: AdminAddresses = None,
    _token: AdminToken = None,
    as_json: Json = False,
    watching: Watch = False,
) -> None:
    """Show every replica of a Broker: its role, clients, memory and journal.

    Exit code 1 means that there is no master.

    Example: lockkeeper status --admin http://127.0.0.1:8161
    """
    if watching:
        watch(lambda: _watched(admin), as_json)
        return
    found = replicas(admin)
    show(listing(found, time.time()), as_json)
    if not _has_master(found):
        raise typer.Exit(FAILED)


def listing(found: Sequence[Status], now: float) -> Listing:
    """Return the replicas as a table; *now* is in seconds since 1970."""
    return Listing(
        COLUMNS,
        [_row(status, now) for status in found],
        {"replicas": list(found)},
        above=_heading(found),
        below=_bridges(found) if _has_master(found) else ("There is no master.",),
        styles=[STYLES.get(status["role"], "") for status in found],
    )


def client_url(listeners: Sequence[str]) -> str:
    """Return what clients connect by: the failover URL of a broker's OpenWire listeners."""
    addresses = [
        listener.replace("openwire://", "tcp://").replace("//0.0.0.0:", "//127.0.0.1:")
        for listener in listeners
        if listener.startswith("openwire://")
    ]
    return f"failover:({','.join(addresses)})"


def _watched(admin: Sequence[str] | None) -> Listing:
    """Return what there is to see now, even if nobody answers."""
    try:
        return listing(replicas(admin), time.time())
    except AdminError as error:
        return Listing(COLUMNS, (), {"replicas": [], "error": str(error)}, below=(str(error),))


def _heading(found: Sequence[Status]) -> tuple[str, ...]:
    first = found[0]
    where = f"journal in {first['data']}"
    return (f"{first['broker']}: clients use {client_url(first['listeners'])}, {where}",)


def _bridges(found: Sequence[Status]) -> tuple[str, ...]:
    """Return a line for each bridge of the master."""
    bridges = (bridge for status in found for bridge in status.get("bridges", ()))
    return tuple(map(_bridge, bridges))


def _bridge(bridge: Mapping[str, Any]) -> str:
    verb = "to" if bridge["initiator"] else "from"
    name = f"Bridge {bridge['name']} {verb} {bridge['address']}"
    if bridge["state"] != "connected":
        return f"{name}: {bridge['failure'] or 'waits for the other broker'}"
    arrows = "both ways" if bridge["duplex"] else "one way"
    counts = [f"{bridge['dequeued']:,} forwarded", f"{bridge['received']:,} received"]
    if bridge["unconfirmed"]:
        counts.append(f"{bridge['unconfirmed']:,} not confirmed")
    if bridge["stranded"]:
        counts.append(f"{bridge['stranded']:,} stranded here")
    return f"{name}, broker {bridge['broker']}, {arrows}: {', '.join(counts)}"


def _has_master(found: Sequence[Status]) -> bool:
    return any(status["role"] == MASTER for status in found)


def _row(status: Status, now: float) -> list[str]:
    if status["role"] == SILENT:
        return ["-", SILENT, "", "", "", "", "", status["admin"]]
    own = [status["replica"], status["role"], duration_text(now - status["since"])]
    own.append(str(status["pid"]))
    if "store" not in status:
        return [*own, "", "", "", status["admin"]]
    memory, store = status["memory"], status["store"]
    return [
        *own,
        f"{status['connections']:,}",
        f"{size_text(memory['used'])} of {size_text(memory['limit'])}",
        f"{size_text(store['bytes'])} in {counted(store['files'], 'file')}",
        status["admin"],
    ]
