"""`lockkeeper bench`: the options, and the exit code."""

import os
import secrets
from typing import Annotated, TypeAlias

import typer

from lockkeeper.cli.connecting import (
    DEFAULT_URL,
    CaFile,
    Password,
    Url,
    User,
    destination,
    seconds,
)
from lockkeeper.cli.errors import FAILED, misused
from lockkeeper.cli.output import show

WORKERS_MAX = 10_000
SIZE_MAX = 100 * 2**20
"""ActiveMQ's frames are 100 MiB at most, and a message is a little more than its body."""

Where: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DESTINATION", help="NAME or queue://NAME for a queue, topic://NAME for a topic."
    ),
]
Producers: TypeAlias = Annotated[
    int, typer.Option("--producers", "-x", min=0, max=WORKERS_MAX, help="Number of producers.")
]
Consumers: TypeAlias = Annotated[
    int, typer.Option("--consumers", "-y", min=0, max=WORKERS_MAX, help="Number of consumers.")
]
Size: TypeAlias = Annotated[
    str, typer.Option("--size", help="Size of a body, such as 512 or 10Ki.")
]
Rate: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--rate",
        "-r",
        min=0.001,
        help="Messages a second of each producer; default: as many as it can.",
    ),
]
Messages: TypeAlias = Annotated[
    int | None,
    typer.Option("--messages", "-n", min=1, help="Number of messages of all producers together."),
]
Duration: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--duration", "-d", help="Time in which producers send; default 10s, none with --messages."
    ),
]
Transaction: TypeAlias = Annotated[
    int,
    typer.Option(
        "--transaction",
        min=0,
        help="Number of messages in each transaction, sent or received; 0: no transactions.",
    ),
]
NonPersistent: TypeAlias = Annotated[
    bool,
    typer.Option("--non-persistent", help="Send messages as non-persistent: not kept on disk."),
]
Prefetch: TypeAlias = Annotated[
    int | None,
    typer.Option("--prefetch", min=0, help="Prefetch of each consumer; default: ActiveMQ's."),
]
ProcessCount: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--processes",
        min=1,
        max=256,
        help="Number of processes among which producers and consumers are spread; default: "
        "one for each core.",
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, for scripts.")
]


def bench(
    target: Where = "BENCH",
    url: Url = DEFAULT_URL,
    producers: Producers = 1,
    consumers: Consumers = 1,
    size: Size = "1Ki",
    rate: Rate = None,
    messages: Messages = None,
    duration: Duration = None,
    transaction: Transaction = 0,
    non_persistent: NonPersistent = False,
    prefetch: Prefetch = None,
    processes: ProcessCount = None,
    user: User = None,
    password: Password = None,
    ca_file: CaFile = None,
    as_json: Json = False,
) -> None:
    """Measure how many messages a second a broker carries, and how long each is under way.

    Consumers receive only what a bench has sent: at any other message the bench ends, and the
    message stays. Exit code 1 means that messages which were sent did not come.

    Example: lockkeeper bench --producers 4 --consumers 4 --transaction 100 --duration 30s
    """
    from lockkeeper.cli.bench.load import Load
    from lockkeeper.cli.bench.report import listing_of, missing, tell_second
    from lockkeeper.cli.bench.running import run_load

    if producers + consumers == 0:
        raise misused("nobody would send or receive: give --producers or --consumers")
    if duration is None and messages is None:
        duration = "10s"
    load = Load(
        url=url,
        user=user,
        password=password,
        ca_file=ca_file,
        destination=destination(target),
        producers=producers,
        consumers=consumers,
        size=_size_of(size),
        rate=rate,
        messages=messages,
        seconds=None if duration is None else seconds("--duration", duration),
        transaction=transaction,
        is_persistent=not non_persistent,
        prefetch=prefetch,
        run=secrets.token_bytes(8),
    )
    count = min(processes or os.cpu_count() or 1, producers + consumers)
    outcome = run_load(load, count, tell_second)
    show(listing_of(load, outcome), as_json)
    if missing(load, outcome.figures):
        raise typer.Exit(FAILED)


def _size_of(text: str) -> int:
    """Return the bytes that *text* says; raises CommandError when a message cannot have them."""
    from lockkeeper.cli.bench.load import STAMP_BYTES
    from lockkeeper_api.units import parse_size

    try:
        size = parse_size(text)
    except ValueError as error:
        raise misused(f"--size: {error}") from error
    if not STAMP_BYTES <= size <= SIZE_MAX:
        raise misused(f"--size: expected {STAMP_BYTES} bytes to 100Mi, found {text}")
    return size
