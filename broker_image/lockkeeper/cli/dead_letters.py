"""`lockkeeper dlq`: see what could not be delivered, and send it back or throw it away."""

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from lockkeeper.cli.connecting import (
    DEFAULT_URL,
    CaFile,
    Password,
    Selector,
    Url,
    User,
    connected,
    destination,
)
from lockkeeper.cli.errors import FAILED, CommandError, misused
from lockkeeper.cli.output import Column, Listing, counted, say, show

if TYPE_CHECKING:
    from lockkeeper.client import Producer, ReceivedMessage, Session
    from lockkeeper.message.destination import Destination

app = typer.Typer(
    help="List dead letters, send them back to their first destinations, or delete them."
)

DEFAULT_QUEUE = "ActiveMQ.DLQ"
CAUSE = "dlqDeliveryFailureCause"
RETRY_OF = "lockkeeper_retry_of"
"""The property with the id under which a message died that is sent back: it gets a new one."""
MARKS = (CAUSE, "originalExpiration", "scheduledJobId")
"""The properties that make a dead letter of a message, or tell of a job that it was."""
COLUMNS = (Column("Message"), Column("From"), Column("Cause"))
LIMIT = 100
BATCH = 100
"""How many messages one transaction moves or ends."""
PATIENCE_SECONDS = 2.0

Queue: TypeAlias = Annotated[
    str,
    typer.Option("--queue", "-q", help="Name of the dead letter queue."),
]
Identifiers: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="[MESSAGE-ID]...", help="Ids of the messages."),
]
Every: TypeAlias = Annotated[bool, typer.Option("--all", help="Choose all messages.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


@app.command("list")
def list_letters(
    queue: Queue = DEFAULT_QUEUE,
    selector: Selector = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="Largest number of messages; 0 for all.")
    ] = LIMIT,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
    user: User = None,
    password: Password = None,
    ca_file: CaFile = None,
) -> None:
    """List dead letters, the oldest first, with their destinations and causes.

    Example: lockkeeper dlq list --selector "region = 'EU'"
    """
    source = _dead_letter_queue(queue)
    with connected(url, user, password, ca_file=ca_file) as connection:
        letters = connection.session().browse(source, selector)
        found = list(islice(letters, limit or None))
        more = next(letters, None) is not None
    _show(source, found, as_json)
    if more:
        say(f"there are more than {limit:,}; --limit 0 shows all")


@app.command("show")
def show_letter(
    identifier: Annotated[str, typer.Argument(metavar="MESSAGE-ID", help="Id of the message.")],
    queue: Queue = DEFAULT_QUEUE,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
    user: User = None,
    password: Password = None,
    ca_file: CaFile = None,
) -> None:
    """Show one dead letter with its headers, properties and body.

    Example: lockkeeper dlq show ID:host-45107-1700000000000-1:1:1:1:1
    """
    source = _dead_letter_queue(queue)
    with connected(url, user, password, ca_file=ca_file) as connection:
        letter = next(connection.session().browse(source, _selector([identifier], None)), None)
        if letter is None:
            raise CommandError(f"{source} has no message {identifier}", FAILED)
    _show_whole(letter, as_json)


@app.command()
def retry(
    identifiers: Identifiers = None,
    every: Every = False,
    selector: Selector = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="Destination to send them to, instead of their first ones."),
    ] = None,
    queue: Queue = DEFAULT_QUEUE,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
    ca_file: CaFile = None,
) -> None:
    """Send dead letters back to their first destinations.

    Each message is moved in a transaction: it is either there again or still a dead letter. It
    gets a new id and no expiry, and loses the properties of a dead letter. The property
    lockkeeper_retry_of has its first id.

    Example: lockkeeper dlq retry --selector "dlqDeliveryFailureCause LIKE '%timeout%'"
    """
    source = _dead_letter_queue(queue)
    target = None if to is None else destination(to)
    wanted = _wanted(identifiers, every, selector)
    sent: Counter[str] = Counter()
    with connected(url, user, password, ca_file=ca_file) as connection:
        session = connection.session(transacted=True)
        producer = session.producer()
        for letter in _taken(session, source, wanted):
            sent[_send_back(producer, letter, target)] += 1
    for name, count in sorted(sent.items()):
        print(f"{counted(count, 'message')} to {name}")
    _tell_missing(source, identifiers, sent.total())


@app.command()
def purge(
    identifiers: Identifiers = None,
    every: Every = False,
    selector: Selector = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without a question.")] = False,
    queue: Queue = DEFAULT_QUEUE,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
    ca_file: CaFile = None,
) -> None:
    """Delete dead letters for good.

    Example: lockkeeper dlq purge --all --yes
    """
    source = _dead_letter_queue(queue)
    wanted = _wanted(identifiers, every, selector)
    with connected(url, user, password, ca_file=ca_file) as connection:
        session = connection.session(transacted=True)
        if not yes:
            _confirm(_count(session, source, wanted), source)
        ended = sum(1 for _ in _taken(session, source, wanted))
    print(f"{counted(ended, 'message')} ended")
    _tell_missing(source, identifiers, ended)


def _dead_letter_queue(name: str) -> "Destination":
    source = destination(name)
    if not source.is_queue:
        raise misused(f"--queue {name}: dead letters wait in queues")
    return source


def _wanted(identifiers: list[str] | None, every: bool, selector: str | None) -> str | None:
    """Return the selector of the messages that are meant, None for all of them."""
    if not identifiers and not every and selector is None:
        raise misused("no messages are named: give their ids, --selector or --all")
    if every and (identifiers or selector):
        raise misused("--all goes with neither message ids nor --selector")
    return _selector(identifiers or [], selector)


def _selector(identifiers: list[str], selector: str | None) -> str | None:
    if not identifiers:
        return selector
    escaped = ", ".join("'" + each.replace("'", "''") + "'" for each in identifiers)
    named = f"JMSMessageID IN ({escaped})"
    return named if selector is None else f"{named} AND ({selector})"


def _count(session: "Session", source: "Destination", wanted: str | None) -> int:
    return sum(1 for _ in session.browse(source, wanted))


def _confirm(count: int, source: "Destination") -> None:
    if not sys.stdin.isatty():
        raise misused("there is no terminal to ask at: give --yes")
    if not typer.confirm(f"End {counted(count, 'message')} of {source} for good?"):
        raise typer.Exit(FAILED)


def _taken(
    session: "Session", source: "Destination", wanted: str | None
) -> "Iterator[ReceivedMessage]":
    """Take the messages that are there now; committed in batches, what was done with them too.

    One that comes back meanwhile is left alone.
    """
    count = _count(session, source, wanted)
    consumer = session.consumer(source, wanted, prefetch=0)
    uncommitted = 0
    while count and (letter := consumer.receive(PATIENCE_SECONDS)) is not None:
        yield letter
        count -= 1
        uncommitted += 1
        if uncommitted == BATCH:
            session.commit()
            uncommitted = 0
    session.commit()


def _send_back(
    producer: "Producer", letter: "ReceivedMessage", target: "Destination | None"
) -> str:
    """Send a dead letter where it belongs; return the name of that."""
    to = target or letter.original_destination
    if to is None:
        raise CommandError(
            f"{letter.message_id} does not name its first destination; give one by --to",
            FAILED,
        )
    # Of one that died again, the id that it had at first: one id names all its retries.
    first = letter.properties.get(RETRY_OF) or letter.message_id
    producer.forward(letter, destination=to, without=MARKS, extra={RETRY_OF: first})
    return str(to)


def _tell_missing(source: "Destination", identifiers: list[str] | None, done: int) -> None:
    if identifiers and done < len(set(identifiers)):
        missing = len(set(identifiers)) - done
        raise CommandError(f"{source} has no {counted(missing, 'message')} of those named", FAILED)
    if not done:
        say(f"no dead letter in {source} matches")


def _show(source: "Destination", letters: "list[ReceivedMessage]", as_json: bool) -> None:
    from lockkeeper.cli.messages import message_json, printable

    if as_json:
        for letter in letters:
            print(message_json(letter))
        return
    rows = [
        (
            letter.message_id,
            str(letter.original_destination or "-"),
            printable(str(letter.properties.get(CAUSE, "-"))).replace("\n", " "),
        )
        for letter in letters
    ]
    below = () if letters else (f"no dead letter in {source} matches",)
    show(Listing(COLUMNS, rows, None, below=below), as_json=False)


def _show_whole(letter: "ReceivedMessage", as_json: bool) -> None:
    from lockkeeper.cli.messages import body_text, message_json, message_object, printable

    if as_json:
        print(message_json(letter, indent=2))
        return
    told = message_object(letter)
    body, properties = told.pop("body"), told.pop("properties", {})
    for name, value in {**told, **properties}.items():
        print(printable(f"{name}: {value}"))
    print()
    print(printable(body_text(body)))
