"""The command `lockkeeper`: its sub-commands, its version, and how it fails."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from lockkeeper.cli import dead_letters, journal, running, transactions
from lockkeeper.cli.backup import backup, restore
from lockkeeper.cli.bench.command import bench
from lockkeeper.cli.browse import browse
from lockkeeper.cli.destinations import destinations
from lockkeeper.cli.entry import Version, run
from lockkeeper.cli.plugins import add_plugins
from lockkeeper.cli.receive import receive
from lockkeeper.cli.send import send
from lockkeeper.cli.status import status
from lockkeeper.cli.users import user
from lockkeeper.cli.why import why

_IN_CLUSTER = re.compile(r"brokers?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")

app = typer.Typer(
    name="lockkeeper",
    help="A message broker that speaks OpenWire and keeps its messages in KahaDB.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (running.up, running.broker, status, destinations, why, send, receive, browse):
    app.command()(_command)
app.command()(backup)
app.command()(restore)
app.command()(bench)
app.command()(user)
app.add_typer(dead_letters.app, name="dlq")
app.add_typer(transactions.app, name="transactions")
app.add_typer(journal.app, name="journal")
add_plugins(app)


@app.callback()
def _root(_version: Version = False) -> None:
    """A message broker that speaks OpenWire and keeps its messages in KahaDB."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; see `entry.run`."""
    words = sys.argv[1:] if arguments is None else arguments
    if analyses_a_broker(words):
        # Not imported for commands that need no cluster.
        from lockkeeper.cli.cluster.main import main as in_cluster

        return in_cluster(words, "lockkeeper")
    return run(app, "lockkeeper", words)


def analyses_a_broker(words: Sequence[str]) -> bool:
    """Tell whether `analyze` is to read the journal of a Broker in a cluster: `broker/NAME`.

    A directory that is called so comes first.
    """
    named = (word for word in words[1:] if _IN_CLUSTER.fullmatch(word))
    return words[:1] == ["analyze"] and any(not Path(word).is_dir() for word in named)


if __name__ == "__main__":
    sys.exit(main())
