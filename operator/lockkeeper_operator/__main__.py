"""`lockkeeper-operator`: the process that looks after Brokers and Destinations."""

import asyncio
import logging
import socket
from typing import Annotated

import typer
from kubernetes.aio.config import ConfigException

from lockkeeper_operator import embedded
from lockkeeper_operator.brokers.desired.subject import Installation, Monitoring
from lockkeeper_operator.destinations.releasing import release_all
from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.server import connect
from lockkeeper_operator.process import logs
from lockkeeper_operator.process.allocator import give_back_large_blocks
from lockkeeper_operator.process.options import (
    ANALYTICS,
    BACKUPS,
    CLASS,
    DEFAULT_LEASE,
    LEASE,
    MONITORING,
    PULL_SECRETS,
    Options,
    listed,
    monitoring_of,
)

app = typer.Typer(add_completion=False, no_args_is_help=False)
log = logging.getLogger("lockkeeper_operator")

Namespaces = Annotated[
    str,
    typer.Option(
        "--namespaces",
        envvar="LOCKKEEPER_NAMESPACES",
        help="Namespaces to look after, separated by commas; empty for all.",
    ),
]
Domain = Annotated[
    str,
    typer.Option(
        "--cluster-domain",
        envvar="LOCKKEEPER_CLUSTER_DOMAIN",
        help="DNS domain of the cluster.",
    ),
]
Image = Annotated[
    str,
    typer.Option(
        "--image",
        envvar="LOCKKEEPER_BROKER_IMAGE",
        help="Image of Brokers without spec.image.name.",
    ),
]
AnalyticsImage = Annotated[
    str,
    typer.Option(
        "--analytics-image",
        envvar="LOCKKEEPER_ANALYTICS_IMAGE",
        help="Image of JournalAnalyses without spec.image.name; default: --image with -analytics.",
    ),
]
Analytics = Annotated[
    bool,
    typer.Option(
        "--analytics/--no-analytics",
        envvar=ANALYTICS,
        help="Carry out JournalAnalyses; that needs the right to create pods.",
    ),
]
Backups = Annotated[
    bool,
    typer.Option(
        "--backups/--no-backups",
        envvar=BACKUPS,
        help="Carry out JournalBackups.",
    ),
]
Lease = Annotated[
    str, typer.Option("--lease", envvar=LEASE, help="Name of the Lease that the leader holds.")
]
Class = Annotated[
    str,
    typer.Option(
        "--class",
        envvar=CLASS,
        help="Look after resources with this value of the label lockkeeper.dev/class; empty: "
        "those without the label.",
    ),
]
PullSecrets = Annotated[
    str,
    typer.Option(
        "--pull-secrets",
        envvar=PULL_SECRETS,
        help="Pull secrets for --image, separated by commas; each namespace of a Broker needs "
        "them.",
    ),
]
Monitors = Annotated[
    str,
    typer.Option(
        "--monitoring",
        envvar=MONITORING,
        help="JSON with relabelings and metricRelabelings of the monitors of all Brokers.",
    ),
]
Resync = Annotated[
    float,
    typer.Option(
        "--resync",
        envvar="LOCKKEEPER_RESYNC",
        help="Seconds between two looks at a resource that did not change.",
    ),
]
Format = Annotated[
    str, typer.Option("--log-format", envvar="LOCKKEEPER_LOG_FORMAT", help="text or json.")
]
Level = Annotated[
    str, typer.Option("--log-level", envvar="LOCKKEEPER_LOG_LEVEL", help="debug, info or warning.")
]


@app.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    image: Image = "lockkeeper:latest",
    analytics_image: AnalyticsImage = "",
    analytics: Analytics = True,
    backups: Backups = True,
    namespaces: Namespaces = "",
    operator_namespace: Annotated[
        str,
        typer.Option(
            "--operator-namespace",
            envvar="LOCKKEEPER_OPERATOR_NAMESPACE",
            help="Namespace of this pod, and of its Lease.",
        ),
    ] = "lockkeeper-system",
    identity: Annotated[
        str,
        typer.Option(
            "--identity",
            envvar="LOCKKEEPER_OPERATOR_POD",
            help="Name of this replica; default: the host name.",
        ),
    ] = "",
    election: Annotated[
        bool,
        typer.Option(
            "--leader-election/--no-leader-election",
            envvar="LOCKKEEPER_LEADER_ELECTION",
            help="Elect a leader by a Lease; only the leader works.",
        ),
    ] = True,
    lease: Lease = DEFAULT_LEASE,
    class_name: Class = "",
    pull_secrets: PullSecrets = "",
    monitoring: Monitors = "",
    resync: Resync = 600.0,
    domain: Domain = "cluster.local",
    host: Annotated[
        str, typer.Option("--host", help="Address that serves /healthz, /readyz and /metrics.")
    ] = "0.0.0.0",
    port: Annotated[int, typer.Option("--port", help="Port that serves them.")] = 8080,
    log_format: Format = "text",
    log_level: Level = "info",
) -> None:
    """Look after Brokers and Destinations until stopped."""
    _set_up_log(log_format, log_level)
    if context.invoked_subcommand is not None:
        return
    options = Options(
        installation=Installation(
            image,
            operator_namespace,
            domain=domain,
            class_name=class_name,
            pull_secrets=listed(pull_secrets) or (),
            monitoring=_monitoring(monitoring),
        ),
        identity=identity or socket.gethostname(),
        analytics_image=analytics_image,
        analytics=analytics,
        backups=backups,
        namespaces=listed(namespaces),
        election=election,
        lease=lease,
        resync=resync,
        host=host,
        port=port,
    )
    give_back_large_blocks()
    raise typer.Exit(asyncio.run(_run(options)))


@app.command("release")
def release(namespaces: Namespaces = "", class_name: Class = "") -> None:
    """Take the operator's finalizer from all Destinations: before it is uninstalled.

    Their destinations stay on the brokers. The operator must not run any more.
    """
    raise typer.Exit(asyncio.run(_release(listed(namespaces), class_name)))


def main() -> None:
    """Run the command line."""
    app()


async def _run(options: Options) -> int:
    """Run the operator; returns the exit code."""
    try:
        return 0 if await embedded.run(options) else 1
    except ConfigException as error:
        log.error("no cluster is reachable: %s", error)
        return 2


async def _release(namespaces: tuple[str, ...] | None, class_name: str) -> int:
    try:
        api = await connect()
    except ConfigException as error:
        log.error("no cluster is reachable: %s", error)
        return 2
    try:
        count = await release_all(api, namespaces, class_name)
    except ApiError as error:
        log.error("%s", error)
        return 1
    finally:
        await api.close()
    log.info("the finalizers of %d Destinations are removed", count)
    return 0


def _monitoring(said: str) -> Monitoring:
    try:
        return monitoring_of(said)
    except ValueError as error:
        raise typer.BadParameter(f"--monitoring: {error}") from error


def _set_up_log(log_format: str, level: str) -> None:
    if log_format not in ("text", "json"):
        raise typer.BadParameter(f"expected text or json, found {log_format!r}")
    if level not in ("debug", "info", "warning"):
        raise typer.BadParameter(f"expected debug, info or warning, found {level!r}")
    logs.set_up("json" if log_format == "json" else "text", level)


if __name__ == "__main__":
    main()
