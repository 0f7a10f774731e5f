"""`lockkeeper why`: why messages are not delivered, producers wait, files are kept."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from lockkeeper.cli.admin import AdminAddresses, AdminToken, ask, find_master
from lockkeeper.cli.errors import misused
from lockkeeper.cli.output import counted, size_text

FILE, PRODUCER, GROUP = "file", "producer", "group"


def why(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE|group|producer|file",
            help="Name of a queue; `group` for a consumer group of streams; `producer` for waiting "
            "producers; `file` for journal files.",
        ),
    ],
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="[MESSAGE-ID|NAME]",
            help="One message of the queue, the group, one connection or destination, or one file.",
        ),
    ] = None,
    stream: Annotated[
        str | None, typer.Option("--stream", help="Only this stream of the group.")
    ] = None,
    admin: AdminAddresses = None,
    _token: AdminToken = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False,
) -> None:
    """Tell why messages wait in a queue or for a group, producers wait, or files are kept.

    Each reason names its way out. A queue with the name file is queue://file.

    Example: lockkeeper why ORDERS
    """
    if stream is not None and subject != GROUP:
        raise misused("--stream is for `lockkeeper why group NAME`")
    if subject == GROUP:
        if which is None:
            raise misused("which group? `lockkeeper groups lag` lists them")
        answer = _ask(admin, GROUP, name=which, stream=stream)
        lines = _about_group(answer)
    elif subject == FILE:
        answer = _ask(admin, FILE, name=which)
        lines = _about_files(answer)
    elif subject == PRODUCER:
        answer = _ask(admin, PRODUCER, name=which)
        lines = _about_producers(answer)
    elif subject.startswith("topic://"):
        raise misused(f"{subject}: a topic keeps nothing; its durable subscriptions do")
    else:
        answer = _ask(admin, "queue", name=subject, message=which)
        lines = _about_queue(answer)
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    for line in lines:
        print(line)


def _ask(admin: list[str] | None, kind: str, **question: str | None) -> dict[str, Any]:
    query = urlencode({name: value for name, value in question.items() if value})
    answer: dict[str, Any] = ask(find_master(admin)["admin"], f"why/{kind}?{query}")
    return answer


def _about_queue(answer: dict[str, Any]) -> Iterator[str]:
    waiting = counted(answer["depth"], "message")
    yield f"{answer['queue']}: {waiting} waiting, {answer['inFlight']:,} with consumers"
    yield from _reasons(answer["reasons"])


def _about_group(answer: dict[str, Any]) -> Iterator[str]:
    waiting, members = (
        counted(answer["lagMessages"], "message"),
        counted(answer["members"], "member"),
    )
    yield f"{answer['group']}: {waiting} to consume, {members}"
    yield from _reasons(answer["reasons"])
    for stream in answer["streams"]:
        yield f"{stream['stream']}: {counted(stream['lagMessages'], 'message')} to consume"
        yield from _reasons(stream["reasons"])
        for each in stream["partitions"]:
            if each["reasons"]:
                waiting = counted(each["lagMessages"], "message")
                place = f"{stream['stream']}, partition {each['partition']}"
                yield f"{place}: {waiting} to consume from offset {each['offset']:,} on"
                yield from _reasons(each["reasons"])


def _about_producers(answer: dict[str, Any]) -> Iterator[str]:
    if not answer["reasons"]:
        yield "no producer waits"
    yield from _reasons(answer["reasons"])


def _about_files(answer: dict[str, Any]) -> Iterator[str]:
    for each in answer["files"]:
        yield f"{each['file']}: {size_text(each['bytes'])}"
        yield from _reasons(each["reasons"])


def _reasons(reasons: list[dict[str, Any]]) -> Iterator[str]:
    for reason in reasons:
        since = reason.get("since")
        moment = f", since {datetime.fromtimestamp(since / 1000):%H:%M:%S}" if since else ""
        yield f"  {reason['text']}{moment}"
        yield f"    way out: {reason['wayOut']}"
