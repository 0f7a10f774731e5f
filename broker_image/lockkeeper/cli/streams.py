"""`lockkeeper streams`: the streams of a broker with their figures."""

from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from lockkeeper.cli.admin import AdminAddresses, AdminToken, ask, find_master
from lockkeeper.cli.output import Column, Listing, duration_text, show, size_text
from lockkeeper.cli.status import Json

COLUMNS = (
    Column("Stream"),
    Column("Partitions", number=True),
    Column("Messages", number=True),
    Column("Size", number=True),
    Column("Oldest", number=True),
    Column("Kept for"),
)
PARTITION_COLUMNS = (
    Column("Stream"),
    Column("Partition", number=True),
    Column("First offset", number=True),
    Column("Next offset", number=True),
    Column("Size", number=True),
)


def streams(
    pattern: Annotated[
        str | None, typer.Argument(help="Names to list; * stands for any characters.")
    ] = None,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="List each partition with its offsets.")
    ] = False,
    admin: AdminAddresses = None,
    _token: AdminToken = None,
    as_json: Json = False,
) -> None:
    """List streams with their partitions, messages and retention.

    Example: lockkeeper streams 'orders*' --partitions
    """
    found: list[dict[str, Any]] = ask(find_master(admin)["admin"], "streams")["streams"]
    chosen = [each for each in found if pattern is None or fnmatchcase(each["name"], pattern)]
    rows = [_row(each) for each in chosen]
    if partitions:
        rows = [_partition_row(each, one) for each in chosen for one in each["partitions"]]
    none = f"There is no stream {pattern}." if pattern else "There are no streams."
    columns = PARTITION_COLUMNS if partitions else COLUMNS
    show(
        Listing(columns, rows, {"streams": chosen}, below=() if chosen else (none,)),
        as_json,
    )


def _row(stream: dict[str, Any]) -> tuple[str, ...]:
    age = stream["oldestMessageAge"]
    return (
        stream["name"],
        f"{len(stream['partitions']):,}",
        f"{stream['messages']:,}",
        size_text(stream["bytes"]),
        "-" if age is None else duration_text(age / 1000),
        _retention(stream["retention"]),
    )


def _retention(retention: dict[str, Any]) -> str:
    """Return what ends messages, in words."""
    parts = []
    if retention["time"]:
        parts.append(duration_text(retention["time"] / 1000))
    if retention["bytes"]:
        parts.append(f"{size_text(retention['bytes'])} a partition")
    if retention["messages"]:
        parts.append(f"{retention['messages']:,} messages a partition")
    return ", ".join(parts) or "ever"


def _partition_row(stream: dict[str, Any], partition: dict[str, Any]) -> tuple[str, ...]:
    return (
        stream["name"],
        str(partition["partition"]),
        str(partition["minimum"]),
        str(partition["maximum"]),
        size_text(partition["bytes"]),
    )
