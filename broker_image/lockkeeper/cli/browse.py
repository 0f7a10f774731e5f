"""`lockkeeper browse`: look at the messages of a queue without taking them."""

from itertools import islice
from typing import Annotated, TypeAlias

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
from lockkeeper.cli.errors import misused
from lockkeeper.cli.output import say

LIMIT = 100

QueueName: TypeAlias = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
Limit: TypeAlias = Annotated[
    int, typer.Option("--limit", "-n", min=0, help="Largest number of messages; 0 for all.")
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print each whole message as a line of JSON.")
]


def browse(
    queue: QueueName,
    url: Url = DEFAULT_URL,
    selector: Selector = None,
    limit: Limit = LIMIT,
    as_json: Json = False,
    user: User = None,
    password: Password = None,
    ca_file: CaFile = None,
) -> None:
    """Show the messages that wait in a queue, the next one first, without receiving them.

    Example: lockkeeper browse ActiveMQ.DLQ --limit 5
    """
    source = destination(queue)
    if not source.is_queue:
        raise misused(f"{queue}: only queues can be browsed, since a topic keeps no messages")
    shown = 0
    with connected(url, user, password, ca_file=ca_file) as connection:
        from lockkeeper.cli.messages import echo_message, message_json

        messages = connection.session().browse(source, selector)
        for message in islice(messages, limit or None):
            if as_json:
                print(message_json(message))
            else:
                echo_message(message)
            shown += 1
        more = next(messages, None) is not None
    if more:
        say(f"there are more than {limit:,}; --limit 0 shows all")
    elif not shown:
        say(f"{source} holds nothing" + (" like that" if selector else ""))
