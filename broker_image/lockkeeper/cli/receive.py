"""`lockkeeper receive`: take messages from a queue or a topic."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from lockkeeper.cli.connecting import (
    DEFAULT_URL,
    CaFile,
    ClientId,
    Password,
    Selector,
    Target,
    Url,
    User,
    connected,
    destination,
    seconds,
)
from lockkeeper.cli.errors import FAILED, misused
from lockkeeper.cli.output import is_terminal, say

if TYPE_CHECKING:
    from lockkeeper.client import Consumer, ReceivedMessage

TIMEOUT_SECONDS = 5.0

Count: TypeAlias = Annotated[
    int | None,
    typer.Option("--count", "-n", min=1, help="Number of messages; default 1, with --follow all."),
]
Timeout: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        "-t",
        help="Longest wait for a message, such as 30s; default 5s, with --follow no limit.",
    ),
]
Follow: TypeAlias = Annotated[
    bool, typer.Option("--follow", "-f", help="Receive every message that comes, until Ctrl-C.")
]
Transacted: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--transacted", help="Receive all COUNT messages in one transaction, or none of them."
    ),
]
Subscription: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--subscription",
        help="Name of a durable subscription of a topic, which collects messages from its first "
        "use on; needs --client-id.",
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print each whole message as a line of JSON.")
]
Raw: TypeAlias = Annotated[
    bool, typer.Option("--raw", help="Write bodies as they are, without a line end after each.")
]


def receive(
    target: Target,
    url: Url = DEFAULT_URL,
    count: Count = None,
    timeout: Timeout = None,
    follow: Follow = False,
    selector: Selector = None,
    transacted: Transacted = False,
    subscription: Subscription = None,
    client_id: ClientId = None,
    as_json: Json = False,
    raw: Raw = False,
    user: User = None,
    password: Password = None,
    ca_file: CaFile = None,
) -> None:
    """Receive messages and print their bodies; a terminal shows their headers, too.

    A message is acknowledged once it is printed. Exit code 1 means that fewer came than asked
    for. `lockkeeper browse` shows messages without receiving them.

    Example: lockkeeper receive ORDERS --count 10 --selector "region = 'EU'"
    """
    source = destination(target)
    _check_options(source.is_topic, follow, transacted, subscription, client_id)
    wanted = count or (None if follow else 1)
    patience = None if follow else TIMEOUT_SECONDS
    if timeout is not None:
        patience = seconds("--timeout", timeout)
    with connected(url, user, password, client_id, ca_file) as connection:
        from lockkeeper.client import Acknowledge

        session = connection.session(transacted=transacted, acknowledge=Acknowledge.CLIENT)
        consumer = session.consumer(
            source,
            selector,
            prefetch=0 if source.is_queue and not follow else None,
            subscription_name=subscription,
        )
        settle = None if transacted else session.acknowledge
        came = _take_messages(consumer, wanted, patience, _printer(as_json, raw), settle)
        if transacted and came == wanted:
            session.commit()
    if wanted is not None and came < wanted:
        _tell_shortage(came, wanted, patience, transacted)
        raise typer.Exit(FAILED)


def _take_messages(
    consumer: "Consumer",
    wanted: int | None,
    patience: float | None,
    show: "Callable[[ReceivedMessage], None]",
    settle: Callable[[], None] | None,
) -> int:
    """Take messages until enough came, none comes, or Ctrl-C; return how many came."""
    came = 0
    try:
        for message in _messages(consumer, patience):
            show(message)
            came += 1
            if settle is not None:
                settle()
            if came == wanted:
                break
    except KeyboardInterrupt:
        if wanted is not None:
            raise
    return came


def _messages(consumer: "Consumer", patience: float | None) -> "Iterator[ReceivedMessage]":
    while (message := consumer.receive(patience)) is not None:
        yield message


def _printer(as_json: bool, raw: bool) -> "Callable[[ReceivedMessage], None]":
    """Return what prints a message the way it was asked for."""
    from lockkeeper.cli.messages import echo_message, message_json, write_body

    def for_scripts(message: "ReceivedMessage") -> None:
        print(message_json(message), flush=True)

    def bodies(message: "ReceivedMessage") -> None:
        write_body(message.body, raw)

    if as_json:
        return for_scripts
    return echo_message if is_terminal() and not raw else bodies


def _check_options(
    is_topic: bool,
    follow: bool,
    transacted: bool,
    subscription: str | None,
    client_id: str | None,
) -> None:
    """Refuse options that do not go together."""
    if transacted and follow:
        raise misused("--transacted needs an end: it does not go with --follow")
    if subscription is not None and not (is_topic and client_id):
        raise misused("--subscription needs topic://NAME and --client-id")


def _tell_shortage(came: int, wanted: int, patience: float | None, transacted: bool) -> None:
    kept = "; nothing was taken" if transacted and came else ""
    time = "" if patience is None else f" within {patience:g} s"
    if wanted == 1:
        say(f"no message came{time}")
    else:
        say(f"{came:,} of {wanted:,} messages came, then none{time}{kept}")
