"""The command `kubectl lockkeeper`: its sub-commands, and how it fails.

kubectl finds it as `kubectl-lockkeeper` on the PATH. The options that say which cluster and
namespace is meant (-n, --context, …) are kubectl's own and may stand anywhere.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from lockkeeper.cli.cluster import backups, operations
from lockkeeper.cli.cluster.analyze import RULE_BROKEN, Asked, analyze
from lockkeeper.cli.cluster.forwarding import FORWARDED, run_forwarded
from lockkeeper.cli.cluster.kubectl import Kubectl, split_options
from lockkeeper.cli.cluster.logs import show_logs
from lockkeeper.cli.cluster.promotion import promote as hand_over
from lockkeeper.cli.cluster.report import write_report
from lockkeeper.cli.cluster.status import show_status
from lockkeeper.cli.cluster.top import show_top
from lockkeeper.cli.entry import Version, run
from lockkeeper.cli.output import say, telling_steps
from lockkeeper.cli.plugins import PASS_EVERYTHING_ON

app = typer.Typer(
    name="kubectl lockkeeper",
    help="Inspect and control Brokers in a cluster. kubectl's own options -n, "
    "--context, --kubeconfig, --cluster and --as say which are meant.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name: TypeAlias = Annotated[str, typer.Argument(metavar="BROKER", help="Name of the Broker.")]
Pod: TypeAlias = Annotated[str, typer.Argument(metavar="POD", help="One of its pods.")]
PROMOTION_SECONDS = 90.0
TOP_SECONDS, TOP_LINES = 2.0, 30


@app.command()
def status(
    context: typer.Context,
    name: Name,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False,
) -> None:
    """Show a Broker's pods, lock, journal and destinations; exit code 1 unless it serves."""
    show_status(_kubectl(context), name, as_json)


@app.command()
def top(
    context: typer.Context,
    name: Name,
    interval: Annotated[
        float, typer.Option("--interval", min=0.5, help="Seconds between two measurements.")
    ] = TOP_SECONDS,
    lines: Annotated[
        int, typer.Option("--lines", min=1, help="Destinations to show; JSON shows all.")
    ] = TOP_LINES,
    once: Annotated[bool, typer.Option("--once", help="Measure once, then end.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, a line for each measurement.")
    ] = False,
) -> None:
    """Show messages per second in and out, the busiest destinations first."""
    show_top(_kubectl(context), name, interval, lines, once=once, as_json=as_json)


@app.command()
def promote(
    context: typer.Context,
    name: Name,
    pod: Annotated[
        str | None, typer.Argument(metavar="[POD]", help="Standby to promote; default: any.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds to wait.")
    ] = PROMOTION_SECONDS,
) -> None:
    """Stop the master cleanly, and wait until a standby has taken over.

    A standby that is named must be proven able to; others are fenced meanwhile.
    """
    hand_over(_kubectl(context), name, pod, timeout)


@app.command()
def fence(context: typer.Context, name: Name, pod: Pod) -> None:
    """Keep a pod from serving and from taking over, until `unfence`; the pod goes on running."""
    operations.set_fence(_kubectl(context), name, pod, True)
    say(f"{pod} is to be fenced")


@app.command()
def unfence(context: typer.Context, name: Name, pod: Pod) -> None:
    """Make a fenced pod a standby again."""
    operations.set_fence(_kubectl(context), name, pod, False)
    say(f"{pod} may stand by again")


@app.command()
def pause(context: typer.Context, name: Name) -> None:
    """Stop the operator from changing the Broker's children, until `resume`."""
    operations.set_field(_kubectl(context), name, "paused", True)
    say(f"the operator leaves {name} as it is; brokers go on, and fail over by themselves")


@app.command()
def resume(context: typer.Context, name: Name) -> None:
    """Let the operator change the Broker's children again."""
    operations.set_field(_kubectl(context), name, "paused", False)
    say(f"the operator looks after {name} again")


@app.command()
def hibernate(context: typer.Context, name: Name) -> None:
    """Stop all pods and keep the journal, until `wake`."""
    operations.set_field(_kubectl(context), name, "hibernated", True)
    say(f"{name} is stopping; its journal stays")


@app.command()
def wake(context: typer.Context, name: Name) -> None:
    """Start the pods of a Broker that hibernates."""
    operations.set_field(_kubectl(context), name, "hibernated", False)
    say(f"{name} is starting")


@app.command()
def logs(
    context: typer.Context,
    name: Name,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the logs until Ctrl-C.")
    ] = False,
    lines: Annotated[int, typer.Option("--tail", help="Last lines of each pod; -1: all.")] = 100,
    since: Annotated[
        str | None, typer.Option("--since", help="Maximum age of lines, such as 5m or 2h.")
    ] = None,
) -> None:
    """Show the logs of all pods of a Broker."""
    code = show_logs(_kubectl(context), name, follow=follow, lines=lines, since=since)
    raise typer.Exit(code)


@app.command()
def report(
    context: typer.Context,
    name: Name,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; default: lockkeeper-BROKER.tar.gz."),
    ] = None,
) -> None:
    """Write resources, logs and events to a file for support, without secrets."""
    target = output or Path(f"lockkeeper-{name}.tar.gz")
    for line in write_report(_kubectl(context), name, target):
        say(f"left out {line}")
    print(target)


@app.command("analyze")
def analyze_journal(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="BROKER", help="Name of the Broker, or broker/NAME.")
    ],
    report: Annotated[
        list[str] | None,
        typer.Option("--report", "-r", help="Report to make; may be repeated."),
    ] = None,
    since: Annotated[
        str, typer.Option("--since", help="Start: 24h ago, or 2026-01-31T12:00:00Z.")
    ] = "",
    until: Annotated[str, typer.Option("--until", help="End, in the same forms.")] = "",
    destination: Annotated[
        str,
        typer.Option("--destination", "-d", help="Names or wildcards, separated by commas."),
    ] = "",
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            help="A limit such as 'p99 > 5s for 10m'; may be repeated. Exit code 3: broken.",
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="auto, sparkApplication, apache, native or local.")
    ] = "auto",
    executors: Annotated[
        int | None,
        typer.Option(
            "--executors", min=1, help="Number of Spark executors; the engine local has none."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the page and the Parquet files.")
    ] = Path("report"),
) -> None:
    """Analyse a Broker's journal by Spark in the cluster, and download the report."""
    more = {"since": since, "until": until, "destination": destination, "engine": engine}
    given = {key: value for key, value in more.items() if value}
    asked = Asked(report or (), rule or (), given, executors)
    broker = name.removeprefix("brokers/").removeprefix("broker/")
    with telling_steps() as tell:
        found = analyze(_kubectl(context), broker, asked, out, tell)
    print(found.path)
    for each in found.broken:
        say(f"broken: {each}")
    if found.broken:
        raise typer.Exit(RULE_BROKEN)


@app.command("backup")
def make_backup(
    context: typer.Context,
    name: Name,
    claim: Annotated[
        str | None, typer.Option("--claim", help="PersistentVolumeClaim that receives the backup.")
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", help="Directory in it; default: the backup's name.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Object store, such as s3://bucket/orders.")
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image", help="Image with fsspec's package for the URL.")
    ] = None,
    credentials: Annotated[
        str | None, typer.Option("--credentials", help="Secret with the URL's credentials.")
    ] = None,
) -> None:
    """Back up a Broker's journal now, and wait until the backup is made.

    Without --claim and --url the target is that of the Broker's JournalBackup.
    """
    asked = backups.asked(claim, path, url, image, credentials)
    with telling_steps() as tell:
        made = backups.back_up(_kubectl(context), name, asked, tell)
    print(f"{made['metadata']['name']}: {backups.told(made)}")


@app.command("restore")
def restore_backup(
    context: typer.Context,
    backup: Annotated[str, typer.Argument(metavar="BACKUP", help="Name of the JournalBackup.")],
    name: Annotated[str, typer.Argument(metavar="BROKER", help="Name of the new Broker.")],
    until: Annotated[
        str | None, typer.Option("--until", help="End of the journal: 2026-01-31T12:00:00Z.")
    ] = None,
) -> None:
    """Make a Broker that begins with a backup, and wait until it serves.

    Its spec is that of the Broker that was backed up.
    """
    with telling_steps() as tell:
        made = backups.restore(_kubectl(context), backup, name, until, tell)
    print(f"{made['metadata']['name']}: {made['status'].get('master')} serves clients")


def _forwarding(command: str) -> Callable[[typer.Context, str], None]:
    """Return what runs a command of `lockkeeper` against a Broker's master."""

    def run(context: typer.Context, name: Name) -> None:
        words = [command, *context.args]
        raise typer.Exit(run_forwarded(_kubectl(context), name, words))

    return run


for _command in FORWARDED:
    app.command(
        _command,
        help=f"Run `lockkeeper {_command}` against the master of a Broker.",
        context_settings={**PASS_EVERYTHING_ON, "allow_interspersed_args": False},
    )(_forwarding(_command))


def _kubectl(context: typer.Context) -> Kubectl:
    return Kubectl(context.obj)


@app.callback()
def _root(_version: Version = False) -> None:
    pass


def main(arguments: list[str] | None = None, program: str = "kubectl lockkeeper") -> int:
    """Run the command line and return its exit code; see `entry.run`."""
    own, words = split_options(sys.argv[1:] if arguments is None else arguments, FORWARDED)
    return run(app, program, words, own)


if __name__ == "__main__":
    sys.exit(main())
