"""`lockkeeper groups`: consumer groups of streams, how far they are, and setting them back."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

import typer

from lockkeeper.cli.admin import AdminAddresses, AdminToken, ask, find_master
from lockkeeper.cli.errors import misused
from lockkeeper.cli.output import Column, Listing, duration_text, show
from lockkeeper.cli.status import Json

app = typer.Typer(help="Show how far consumer groups of streams are, and set them back.")

_OFFSETS: Final = re.compile(r"\d+:\d+(,\d+:\d+)*", re.ASCII)
LAG_COLUMNS = (
    Column("Group"),
    Column("Stream"),
    Column("Partition", number=True),
    Column("Offset", number=True),
    Column("Lag", number=True),
    Column("Behind", number=True),
    Column("Locked by"),
)
MEMBER_COLUMNS = (
    Column("Group"),
    Column("Client"),
    Column("Address"),
    Column("Model"),
    Column("Subscriptions"),
)
FIRST, LAST = "first", "last"

GroupName: TypeAlias = Annotated[str | None, typer.Argument(help="Group; without it, all.")]


@app.command()
def lag(
    group: GroupName = None,
    admin: AdminAddresses = None,
    _token: AdminToken = None,
    as_json: Json = False,
) -> None:
    """Show for each partition how many messages a group has not consumed, and their age.

    Example: lockkeeper groups lag billing
    """
    found = _groups(admin, group)
    rows = [_lag_row(each, one) for each in found for one in each["partitions"]]
    nothing = "No group has consumed anything yet."
    _show(LAG_COLUMNS, rows, found, nothing, group, as_json)


@app.command()
def members(
    group: GroupName = None,
    admin: AdminAddresses = None,
    _token: AdminToken = None,
    as_json: Json = False,
) -> None:
    """List the members of groups with what they subscribe to.

    Example: lockkeeper groups members billing
    """
    found = _groups(admin, group)
    rows = [_member_row(each, one) for each in found for one in each["members"]]
    _show(MEMBER_COLUMNS, rows, found, "Nobody is in a group.", group, as_json)


@app.command()
def reset(
    group: Annotated[str, typer.Argument(help="Group to set back, or forward.")],
    stream: Annotated[str, typer.Argument(help="Stream that it reads.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="Place to go on from: first, last, a time such as 2026-11-27T08:00:00 (local "
            "without an offset), or offsets by partition, such as 0:42,1:17.",
        ),
    ],
    admin: AdminAddresses = None,
    _token: AdminToken = None,
) -> None:
    """Let a group go on at another place of a stream.

    Members that run keep the place they have in memory: stop them first.

    Example: lockkeeper groups reset billing orders --to 2026-11-27T08:00:00
    """
    place: str | int | dict[str, int] = to if to in (FIRST, LAST) else _offsets_or_time(to)
    path = f"groups/{quote(group, safe='')}/reset"
    answer = ask(find_master(admin)["admin"], path, {"stream": stream, "to": place})
    offsets = ", ".join(f"{number}: {offset}" for number, offset in answer["offsets"].items())
    print(f"{group} goes on in {stream} at {offsets}")


def _groups(admin: list[str] | None, group: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(find_master(admin)["admin"], "groups")["groups"]
    return [each for each in found if group is None or each["name"] == group]


def _show(
    columns: Sequence[Column],
    rows: list[tuple[str, ...]],
    groups: list[dict[str, Any]],
    nothing: str,
    asked: str | None,
    as_json: bool,
) -> None:
    """Show rows of groups; without any *nothing*, or that the group asked for is not there."""
    if asked is not None and not groups:
        nothing = f"There is no group {asked}."
    show(Listing(columns, rows, {"groups": groups}, below=() if rows else (nothing,)), as_json)


def _offsets_or_time(text: str) -> dict[str, int] | int:
    """Return the offsets by partition that *text* says, else the time; misuse otherwise."""
    if not _OFFSETS.fullmatch(text):
        return _milliseconds(text)
    pairs = (each.split(":") for each in text.split(","))
    return {partition: int(offset) for partition, offset in pairs}


def _milliseconds(text: str) -> int:
    """Return the time that *text* says, in ms since 1970; misuse otherwise."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise misused(f"--to: expected first, last, a time or offsets, found {text}") from None


def _lag_row(group: dict[str, Any], partition: dict[str, Any]) -> tuple[str, ...]:
    return (
        group["name"],
        partition["stream"],
        str(partition["partition"]),
        str(partition["offset"]),
        f"{partition['lagMessages']:,}",
        duration_text(partition["lagTime"] / 1000) if partition["lagMessages"] else "-",
        partition["lockedBy"] or "-",
    )


def _member_row(group: dict[str, Any], member: dict[str, Any]) -> tuple[str, ...]:
    subscriptions = (f"{name} ({what})" for name, what in member["subscriptions"].items())
    return (
        group["name"],
        member["clientId"],
        member["address"],
        member["model"],
        ", ".join(subscriptions) or "-",
    )
