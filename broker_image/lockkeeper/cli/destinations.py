"""`lockkeeper destinations`: the queues and topics of a broker with their figures."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from lockkeeper.cli.admin import AdminAddresses, AdminError, AdminToken, ask, find_master
from lockkeeper.cli.output import Column, Listing, show, watch
from lockkeeper.cli.status import Json, Watch
from lockkeeper.journal.counters import COUNTERS

FIGURES = {
    "depth": "Depth",
    "consumers": "Consumers",
    "enqueued": "Enqueued",
    "dequeued": "Dequeued",
}
"""The figures that have columns, by their name in JSON."""
_IN_COLUMNS = {*FIGURES, "dispatched"}
"""Deliveries that went well are nothing to tell besides."""
BESIDES = {
    "inFlight": "in flight",
    **{each.json_name: each.title for each in COUNTERS if each.json_name not in _IN_COLUMNS},
}
"""Those that are told when there is something to tell."""
COLUMNS = (
    Column("Name"),
    *(Column(title, number=True) for title in FIGURES.values()),
    Column("Besides"),
)
ANY_DESCENDANT = ">"


def destinations(
    pattern: Annotated[
        str | None,
        typer.Argument(
            help="Names to list: * stands for one level, > for all levels below; "
            "queue://… or topic://… for one kind. Quote the pattern, since the shell reads > too.",
        ),
    ] = None,
    admin: AdminAddresses = None,
    _token: AdminToken = None,
    as_json: Json = False,
    watching: Watch = False,
) -> None:
    """List queues and topics with their figures, counted since the master took over.

    The column Never written counts messages that were acknowledged before their write began.

    Example: lockkeeper destinations 'ORDERS.>'
    """
    if watching:
        watch(lambda: _watched(admin, pattern), as_json)
    else:
        show(_listing(admin, pattern), as_json)


def is_wanted(pattern: str | None, kind: str, name: str) -> bool:
    """Tell whether *pattern* stands for the destination called *name*, a Queue or a Topic."""
    if pattern is None:
        return True
    scheme, separator, path = pattern.partition("://")
    if separator and scheme.removeprefix("temp-") != kind.lower():
        return False
    expected, levels = (path if separator else pattern).split("."), name.split(".")
    for number, level in enumerate(expected):
        if level == ANY_DESCENDANT:
            return True
        if number >= len(levels) or not fnmatchcase(levels[number], level):
            return False
    return len(expected) == len(levels)


def _listing(admin: Sequence[str] | None, pattern: str | None) -> Listing:
    """Return the destinations as a table. Raises AdminError."""
    found: list[dict[str, Any]] = ask(find_master(admin)["admin"], "destinations")["destinations"]
    chosen = [each for each in found if is_wanted(pattern, each["kind"], each["name"])]
    none = f"There is no destination {pattern}." if pattern else "There are no destinations."
    return Listing(
        COLUMNS,
        [
            [name_as_taken(each), *(f"{each[figure]:,}" for figure in FIGURES), _besides(each)]
            for each in chosen
        ],
        {"destinations": chosen},
        below=() if chosen else (none,),
        styles=["yellow" if _is_stuck(each) else "" for each in chosen],
    )


def _watched(admin: Sequence[str] | None, pattern: str | None) -> Listing:
    try:
        return _listing(admin, pattern)
    except AdminError as error:
        return Listing(COLUMNS, (), {"destinations": [], "error": str(error)}, below=(str(error),))


def name_as_taken(view: dict[str, Any]) -> str:
    """Return the name as commands take it: a queue's alone, others with what they are."""
    scheme = ("temp-" if view["temporary"] else "") + str(view["kind"]).lower()
    return str(view["name"]) if scheme == "queue" else f"{scheme}://{view['name']}"


def _besides(view: dict[str, Any]) -> str:
    told = (f"{view[figure]:,} {what}" for figure, what in BESIDES.items() if view.get(figure))
    return ", ".join(told)


def _is_stuck(view: dict[str, Any]) -> bool:
    """Tell whether messages wait that nobody takes."""
    return bool(view["depth"]) and not view["consumers"] and view["kind"] == "Queue"
