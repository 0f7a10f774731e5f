"""Options of commands that talk to a broker as a client: the URL, destinations, durations."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from lockkeeper.cli.errors import misused
from lockkeeper.cli.output import say

if TYPE_CHECKING:
    from lockkeeper.client import Connection
    from lockkeeper.message.destination import Destination

DEFAULT_URL = "tcp://127.0.0.1:61616"
# A failover URL is tried for ever; after so long the person is told what is going on.
PATIENCE_SECONDS = 2.0

Url: TypeAlias = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="LOCKKEEPER_URL",
        help="URL of the broker: tcp://HOST:PORT, ssl://HOST:PORT, or "
        "failover:(tcp://HOST:PORT,…), which waits for a broker and reconnects after its loss.",
    ),
]
Target: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DESTINATION", help="NAME or queue://NAME for a queue, topic://NAME for a topic."
    ),
]
Selector: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--selector", "-s", help="JMS selector of the messages, such as \"region = 'EU'\"."
    ),
]
ClientId: TypeAlias = Annotated[
    str | None, typer.Option("--client-id", help="Client id; one connection at a time may use it.")
]
User: TypeAlias = Annotated[
    str | None, typer.Option("--user", envvar="LOCKKEEPER_USER", help="User name.")
]
Password: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--password",
        envvar="LOCKKEEPER_PASSWORD",
        show_envvar=True,
        help="Password; process lists do not show it when the environment gives it.",
    ),
]
CaFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        envvar="LOCKKEEPER_CA_FILE",
        metavar="FILE",
        help="For ssl://: certificates of trusted authorities (PEM); default: the system's.",
    ),
]


@contextmanager
def connected(
    url: str,
    user: str | None,
    password: str | None,
    client_id: str | None = None,
    ca_file: Path | None = None,
) -> "Iterator[Connection]":
    """Give a connection for as long as the block runs; tell the person when that takes time."""
    from lockkeeper.client import TlsOptions, connect

    # The password that a URL may have is for nobody to see.
    hint = f"waiting for a broker at {url.partition('?')[0]}; Ctrl-C gives up"
    impatience = threading.Timer(PATIENCE_SECONDS, say, [hint])
    impatience.daemon = True
    impatience.start()
    try:
        connection = connect(url, client_id, user, password, tls=TlsOptions(ca_file))
    finally:
        impatience.cancel()
    with connection:
        yield connection


def destination(text: str) -> "Destination":
    """Return the destination that *text* names: `NAME`, `queue://NAME` or `topic://NAME`."""
    from lockkeeper.message.destination import SCHEMES, parse_destination

    scheme, separator, _ = text.partition("://")
    if separator and scheme not in SCHEMES:
        raise misused(f"{text}: write NAME, queue://NAME or topic://NAME")
    try:
        return parse_destination(text)
    except ValueError as error:
        raise misused(str(error)) from error


def seconds(option: str, text: str) -> float:
    """Return the seconds that *text* says: `30s`, `500ms`, `1h`, or a number of seconds."""
    try:
        found = float(text)
    except ValueError:
        from lockkeeper_api.units import parse_duration

        try:
            found = parse_duration(text).total_seconds()
        except ValueError as error:
            raise misused(f"{option}: {error}") from error
    if not 0 <= found <= threading.TIMEOUT_MAX:
        raise misused(f"{option}: expected a duration of 0 s or more, found {text!r}")
    return found
