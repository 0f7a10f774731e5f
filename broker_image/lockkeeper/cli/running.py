"""Commands that run brokers: `broker`, one process; `up`, all replicas of a Broker."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from lockkeeper.cli.errors import CommandError
from lockkeeper.cli.resources import data_directory, load, with_addresses
from lockkeeper.server.process import BrokerProcess, ProcessOptions
from lockkeeper.server.replicas import Replicas
from lockkeeper.store.base import StoreError

Files = Annotated[
    list[Path] | None,
    typer.Option(
        "-f",
        "--file",
        exists=True,
        dir_okay=False,
        help="YAML with a Broker and its Destinations; may be given several times.",
    ),
]
Name = Annotated[
    str | None, typer.Option("--name", help="Which Broker, if the files hold several.")
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        file_okay=False,
        help="Directory of the journal (KahaDB, ours or ActiveMQ's); "
        "default: lockkeeper-data/NAME.",
    ),
]
COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")


def broker(
    files: Files = None,
    name: Name = None,
    data: Data = None,
    listen: Annotated[
        list[str] | None,
        typer.Option("--listen", help="Listen there instead: openwire://HOST:PORT."),
    ] = None,
    admin: Annotated[
        str | None, typer.Option("--admin", help="Admin endpoint instead: HOST:PORT.")
    ] = None,
    replica: Annotated[
        int, typer.Option("--replica", min=0, help="Number of this replica of the Broker.")
    ] = 0,
    peers: Annotated[list[str] | None, typer.Option("--peer", hidden=True)] = None,
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> None:
    """Run one broker in this process until it is told to stop.

    While another process holds the directory's lock, it stands by.
    """
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    resource, destinations = load(files or [], name)
    resource = with_addresses(resource, listen or [], admin)
    options = ProcessOptions(
        resource=resource,
        directory=data_directory(resource, data),
        destinations=destinations,
        replica=replica,
        peers=tuple(peers or ()),
        supervised=supervised,
    )
    try:
        uvloop.run(BrokerProcess(options).run())
    except StoreError as error:
        raise CommandError(str(error)) from error


def up(files: Files = None, name: Name = None, data: Data = None) -> None:
    """Run every replica of a Broker on this machine: one master, the others standing by.

    All share one directory and the same client ports. Ctrl-C stops them cleanly.
    """
    resource, _ = load(files or [], name)
    directory = data_directory(resource, data)
    console = Console(highlight=False)
    count = resource.spec.replicas
    admin = resource.spec.admin
    ports = [admin.port + replica if admin.port else 0 for replica in range(count)]
    addresses = [f"http://{admin.host or '127.0.0.1'}:{port}" for port in ports if port]
    commands = []
    for replica in range(count):
        command = [sys.executable, "-m", "lockkeeper.cli.main", "broker", "--supervised"]
        command += ["--replica", str(replica), "--data", str(directory)]
        for path in files or []:
            command += ["--file", str(path)]
        if name:
            command += ["--name", name]
        for address in addresses:
            command += ["--peer", address]
        commands.append(command)
    console.print(
        f"[bold]{resource.metadata.name}[/]: {count} replica(s), journal in {directory}; "
        "Ctrl-C stops"
    )

    def show(replica: int, line: str) -> None:
        colour = COLOURS[replica % len(COLOURS)]
        console.print(f"[{colour}]{resource.metadata.name}-{replica}[/] ", end="")
        console.print(line, markup=False, soft_wrap=True)

    code = asyncio.run(Replicas(commands, show).run())
    if code:
        raise typer.Exit(code)
    console.print("stopped")
