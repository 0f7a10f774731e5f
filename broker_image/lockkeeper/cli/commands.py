"""The table of commands of `lockkeeper`."""

import typer

from lockkeeper.cli.entry import Version
from lockkeeper.cli.lazy import LazyGroup, Listed
from lockkeeper.cli.plugins import plugins

_CLI = "lockkeeper.cli"
TABLE = {
    "up": Listed(
        f"{_CLI}.running",
        "up",
        "Run every replica of a Broker on this machine: one master, the others standing by.",
    ),
    "broker": Listed(
        f"{_CLI}.running",
        "broker",
        "Run one broker in this process until it gets SIGTERM or Ctrl-C.",
    ),
    "status": Listed(
        f"{_CLI}.status",
        "status",
        "Show every replica of a Broker: its role, clients, memory and journal.",
    ),
    "destinations": Listed(
        f"{_CLI}.destinations",
        "destinations",
        "List queues and topics with their figures, counted since the master took over.",
    ),
    "streams": Listed(
        f"{_CLI}.streams",
        "streams",
        "List streams with their partitions, messages and retention.",
    ),
    "groups": Listed(
        f"{_CLI}.groups",
        "app",
        "Show how far consumer groups of streams are, and set them back.",
    ),
    "why": Listed(
        f"{_CLI}.why",
        "why",
        "Tell why messages wait in a queue or for a group, producers wait, or files are kept.",
    ),
    "send": Listed(
        f"{_CLI}.send",
        "send",
        "Send a message and print its id; the broker has it on disk when this command ends.",
    ),
    "receive": Listed(
        f"{_CLI}.receive",
        "receive",
        "Receive messages and print their bodies; a terminal shows their headers, too.",
    ),
    "browse": Listed(
        f"{_CLI}.browse",
        "browse",
        "Show the messages that wait in a queue, the next one first, without receiving them.",
    ),
    "dlq": Listed(
        f"{_CLI}.dead_letters",
        "app",
        "List dead letters, send them back to their first destinations, or delete them.",
    ),
    "transactions": Listed(
        f"{_CLI}.transactions",
        "app",
        "List XA transactions in doubt, and decide them in place of their manager.",
    ),
    "journal": Listed(
        f"{_CLI}.journal",
        "app",
        "Verify, print and salvage journals (KahaDB), also while a broker writes them.",
    ),
    "backup": Listed(
        f"{_CLI}.backup",
        "backup",
        "Copy a journal as it is at one moment, also while a broker writes it.",
    ),
    "restore": Listed(
        f"{_CLI}.backup",
        "restore",
        "Copy a backup into an empty directory, for Lockkeeper or ActiveMQ to serve.",
    ),
    "bench": Listed(
        f"{_CLI}.bench.command",
        "bench",
        "Measure how many messages a second a broker carries, and how long each is under way.",
    ),
    "user": Listed(
        f"{_CLI}.users",
        "user",
        "Set the password of a user, or remove the user; running brokers notice it.",
    ),
}


class Commands(LazyGroup):
    """The commands of `lockkeeper`, and those that other packages bring along."""

    table = TABLE
    more = staticmethod(plugins)


app = typer.Typer(
    name="lockkeeper",
    help="A message broker that speaks OpenWire and keeps its messages in KahaDB.",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root(_version: Version = False) -> None:
    """A message broker that speaks OpenWire and keeps its messages in KahaDB."""


def whole() -> Commands:
    """Return the group with every command imported."""
    group = typer.main.get_command(app)
    assert isinstance(group, Commands)
    group.load_all()
    return group
