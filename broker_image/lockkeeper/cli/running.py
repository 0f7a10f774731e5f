"""Commands that run brokers: `broker`, one process; `up`, all replicas of a Broker."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from lockkeeper.cli.errors import CommandError
from lockkeeper.cli.log_formats import LogFormat
from lockkeeper.cli.output import counted
from lockkeeper.cli.secrets import SECRETS_DIRECTORY

if TYPE_CHECKING:
    from rich.console import Console

    from lockkeeper_api import Broker
    from lockkeeper_api.broker import Listener

Files: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "-f",
        "--file",
        exists=True,
        dir_okay=False,
        help="YAML file with a Broker and its Destinations; may be given several times. "
        "Default: a Broker with every default.",
    ),
]
Name: TypeAlias = Annotated[
    str | None, typer.Option("--name", help="Name of the Broker to run, if the files hold several.")
]
Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data",
        file_okay=False,
        help="Directory of the journal (KahaDB, written by Lockkeeper or by ActiveMQ); "
        "default: lockkeeper-data/NAME.",
    ),
]
Listen: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--listen", help="Address of a listener, instead of the file's: openwire://HOST:PORT."
    ),
]
AdminAddress: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--admin", help="Address of the admin endpoint, instead of the file's: HOST:PORT."
    ),
]
Replica: TypeAlias = Annotated[
    int, typer.Option("--replica", min=0, help="Number of this replica of the Broker.")
]
Secrets: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--secrets",
        exists=True,
        file_okay=False,
        help="Directory with users, certificates and `admin-token`; clients then have to log in. "
        f"Default: {SECRETS_DIRECTORY}, if it exists.",
    ),
]
AcceptLoss: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--accept-loss",
        help="Serve the sound part of a damaged journal, and move the damaged bytes to its "
        "directory `damaged`.",
    ),
]
Log: TypeAlias = Annotated[LogFormat, typer.Option("--log-format", help="Format of the log.")]


def broker(
    files: Files = None,
    name: Name = None,
    data: Data = None,
    listen: Listen = None,
    admin: AdminAddress = None,
    replica: Replica = 0,
    log_format: Log = LogFormat.TEXT,
    secrets: Secrets = None,
    accept_loss: AcceptLoss = False,
    peers: Annotated[list[str] | None, typer.Option("--peer", hidden=True)] = None,
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> None:
    """Run one broker in this process until it gets SIGTERM or Ctrl-C.

    The broker stands by while another process, ActiveMQ too, holds the directory's lock.

    Example: lockkeeper broker --data /var/lib/lockkeeper --listen openwire://0.0.0.0:61616
    """
    from lockkeeper.server.cluster.lease_handover import give_back_inherited_lease
    from lockkeeper.server.cluster.pod_environment import pod_environment

    where = pod_environment()
    # Before anything that takes long to load: a standby waits for it.
    give_back_inherited_lease(where)

    import uvloop

    from lockkeeper.cli.log_view import log_to_stderr
    from lockkeeper.cli.resources import data_directory, load, with_addresses
    from lockkeeper.server.allocator import give_back_large_blocks
    from lockkeeper.server.descriptors import allow_many_descriptors
    from lockkeeper.server.process import BrokerProcess, ProcessOptions
    from lockkeeper.server.secrets import secrets_directory

    declared = load(files or [], name)
    resource = with_addresses(declared.broker, listen or [], admin)
    options = ProcessOptions(
        resource=resource,
        directory=data_directory(resource, data),
        declared=declared,
        files=tuple(files or ()),
        replica=replica,
        peers=tuple(peers or ()),
        supervised=supervised,
        cluster=where,
        secrets=secrets_directory(secrets),
        accept_loss=accept_loss,
    )
    give_back_large_blocks()
    allow_many_descriptors()
    process = BrokerProcess(options)
    log_to_stderr(process.name, log_format)
    uvloop.run(process.run())


def up(
    files: Files = None,
    name: Name = None,
    data: Data = None,
    secrets: Secrets = None,
    accept_loss: AcceptLoss = False,
) -> None:
    """Run every replica of a Broker on this machine: one master, the others standing by.

    All replicas share one directory and the same client ports. A replica that dies is started
    again. Ctrl-C stops them cleanly.

    Example: lockkeeper up -f docs/samples/broker.yaml
    """
    import asyncio

    from lockkeeper.cli.log_view import LogConsole, ReplicasView
    from lockkeeper.cli.resources import data_directory, load
    from lockkeeper.server.replicas import Replicas

    resource = load(files or [], name).broker
    directory = data_directory(resource, data)
    console = LogConsole()
    _greet(console, resource, directory, secrets)
    view = ReplicasView(resource.metadata.name, console)
    commands = _commands(resource, directory, files or [], name, secrets)
    if accept_loss:
        commands = [[*command, "--accept-loss"] for command in commands]
    replicas = Replicas(commands, view.show_line)
    code = asyncio.run(replicas.run())
    if code:
        who = f"{resource.metadata.name}-{replicas.hopeless}"
        raise CommandError(f"{who} cannot run, see above; all are stopped", code)
    console.print("stopped")


def _scheme(listener: "Listener", secrets: Path | None) -> str:
    """Return how clients reach a listener; without secrets there is no TLS."""
    return "tcp" if listener.tls is None or secrets is None else "ssl"


def _greet(console: "Console", resource: "Broker", directory: Path, secrets: Path | None) -> None:
    """Tell what is about to run and how to reach it."""
    from lockkeeper.server.settings import LOOPBACK

    spec = resource.spec
    addresses = ",".join(
        f"{_scheme(each, secrets)}://{each.host or LOOPBACK}:{each.port}"
        for each in spec.listeners
        if each.port
    )
    count = counted(spec.replicas, "replica")
    console.print(f"[bold]{resource.metadata.name}[/], {count}; Ctrl-C stops")
    lines = {"journal": str(directory)}
    if addresses:
        lines["clients"] = f"failover:({addresses})"
    if spec.admin.port:
        lines["admin"] = " ".join(_admin_addresses(resource))
    for title, value in lines.items():
        console.print(f"  [dim]{title:8}[/] {value}", soft_wrap=True)


def _admin_addresses(resource: "Broker") -> list[str]:
    """Return where the replicas answer questions, unless they choose their ports themselves."""
    from lockkeeper.server.settings import LOOPBACK

    admin = resource.spec.admin
    if not admin.port:
        return []
    host = admin.host or LOOPBACK
    return [f"http://{host}:{admin.port + number}" for number in range(resource.spec.replicas)]


def _commands(
    resource: "Broker",
    directory: Path,
    files: Sequence[Path],
    name: str | None,
    secrets: Path | None,
) -> list[list[str]]:
    """Return the command of each replica."""
    shared = [sys.executable, "-m", "lockkeeper.cli.main", "broker", "--supervised"]
    shared += ["--log-format", "json", "--data", str(directory)]
    for path in files:
        shared += ["--file", str(path)]
    if name:
        shared += ["--name", name]
    if secrets is not None:
        shared += ["--secrets", str(secrets)]
    for address in _admin_addresses(resource):
        shared += ["--peer", address]
    return [[*shared, "--replica", str(number)] for number in range(resource.spec.replicas)]
