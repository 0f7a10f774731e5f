"""`lockkeeper send`: one message, the same one many times, or every line of standard input."""

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from lockkeeper.cli.bodies import (
    BodyType,
    line_batches,
    parse_properties,
    read_file,
    repeated_batches,
)
from lockkeeper.cli.connecting import (
    DEFAULT_URL,
    CaFile,
    Password,
    Target,
    Url,
    User,
    connected,
    destination,
    seconds,
)
from lockkeeper.cli.errors import misused
from lockkeeper.cli.output import counted

if TYPE_CHECKING:
    from lockkeeper.client import Connection
    from lockkeeper.message.destination import Destination

File: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="File whose content is sent instead of TEXT; - is standard input.",
    ),
]
StdinLines: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--stdin-lines", help="Send each line of standard input as a message, in transactions."
    ),
]
Count: TypeAlias = Annotated[
    int,
    typer.Option(
        "--count", "-n", min=1, help="Number of times to send the message, in transactions."
    ),
]
Properties: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "-p",
        metavar="NAME=VALUE",
        help="Property of the message; 12, 1.5, true and false keep their types, and "
        "'\"12\"' is a text. May be given several times.",
    ),
]
Priority: TypeAlias = Annotated[
    int, typer.Option("--priority", min=0, max=9, help="JMSPriority; 9 is the highest.")
]
TimeToLive: TypeAlias = Annotated[
    str | None, typer.Option("--ttl", help="Time to live, such as 30s or 2h; absent: no expiry.")
]
NonPersistent: TypeAlias = Annotated[
    bool,
    typer.Option("--non-persistent", help="Send the message as non-persistent: not kept on disk."),
]
Kind: TypeAlias = Annotated[BodyType, typer.Option("--type", help="Type of the message.")]
JmsType: TypeAlias = Annotated[str | None, typer.Option("--jms-type", help="JMSType.")]
CorrelationId: TypeAlias = Annotated[
    str | None, typer.Option("--correlation-id", help="JMSCorrelationID.")
]
ReplyTo: TypeAlias = Annotated[
    str | None, typer.Option("--reply-to", metavar="DESTINATION", help="JMSReplyTo.")
]
Group: TypeAlias = Annotated[
    str | None, typer.Option("--group", help="JMSXGroupID: one consumer gets the whole group.")
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print ids or the summary as JSON, for scripts.")
]


def send(
    target: Target,
    text: Annotated[str | None, typer.Argument(help="Body of the message.")] = None,
    url: Url = DEFAULT_URL,
    file: File = None,
    stdin_lines: StdinLines = False,
    count: Count = 1,
    properties: Properties = None,
    priority: Priority = 4,
    ttl: TimeToLive = None,
    non_persistent: NonPersistent = False,
    kind: Kind = BodyType.TEXT,
    jms_type: JmsType = None,
    correlation_id: CorrelationId = None,
    reply_to: ReplyTo = None,
    group: Group = None,
    user: User = None,
    password: Password = None,
    ca_file: CaFile = None,
    as_json: Json = False,
) -> None:
    """Send a message and print its id; the broker has it on disk when this command ends.

    Several messages are sent in transactions, and only their number is printed.

    Example: lockkeeper send ORDERS 'two pounds of tea' --property region=EU
    """
    _check_one_source(text, file, stdin_lines, count)
    options: dict[str, Any] = {
        "properties": parse_properties(properties or ()),
        "persistent": not non_persistent,
        "priority": priority,
        "time_to_live": None if ttl is None else seconds("--ttl", ttl),
        "type": jms_type,
        "correlation_id": correlation_id,
        "reply_to": None if reply_to is None else destination(reply_to),
        "group_id": group,
    }
    to = destination(target)
    body = text if file is None else read_file(file, kind)
    if isinstance(body, str) and kind is BodyType.BYTES:
        body = os.fsencode(body)
    with connected(url, user, password, ca_file=ca_file) as connection:
        if body is None or count > 1:
            _send_many(connection, to, options, body, count, kind, as_json)
        else:
            message_id = connection.session().producer(to).send(body, **options)
            print(json.dumps({"messageId": message_id}) if as_json else message_id)


def _send_many(
    connection: "Connection",
    to: "Destination",
    options: dict[str, Any],
    body: str | bytes | None,
    count: int,
    kind: BodyType,
    as_json: bool,
) -> None:
    """Send *body*, *count* times, or else the lines of standard input; print the summary."""
    from lockkeeper.cli.sending import send_batches

    batches = line_batches(kind) if body is None else repeated_batches(body, count)
    session = connection.session(transacted=True)
    tally = send_batches(session, batches, partial(session.producer(to).send, **options))
    if as_json:
        summary = {
            "destination": str(to),
            "messages": tally.messages,
            "inDoubt": tally.in_doubt,
            "seconds": round(tally.seconds, 3),
        }
        print(json.dumps(summary))
    else:
        speed = f"in {tally.seconds:.2f} s ({tally.rate:,.0f}/s)"
        print(f"sent {counted(tally.messages, 'message')} to {to} {speed}")


def _check_one_source(text: str | None, file: Path | None, stdin_lines: bool, count: int) -> None:
    """Refuse a command that does not say what to send, or says it twice."""
    sources = (text is not None) + (file is not None) + stdin_lines
    if sources != 1:
        how = "nothing to send" if not sources else "more than one thing to send"
        raise misused(f"{how}: give either TEXT, --file FILE or --stdin-lines")
    if stdin_lines and count > 1:
        raise misused("--stdin-lines sends each line once: it does not go with --count")
