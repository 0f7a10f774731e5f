"""`lockkeeper transactions`: distributed transactions in doubt, and deciding them by hand."""

from typing import Annotated, Any, TypeAlias

import typer

from lockkeeper.cli.admin import AdminAddresses, AdminToken, ask, find_master
from lockkeeper.cli.output import Column, Listing, counted, show

app = typer.Typer(help="List XA transactions in doubt, and decide them in place of their manager.")

COLUMNS = (Column("Transaction"), Column("State"), Column("Sent"), Column("Consumed"))

Identifier: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="XID", help="XID of the transaction, as `lockkeeper transactions list` prints it."
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


@app.command("list")
def list_transactions(
    admin: AdminAddresses = None, _token: AdminToken = None, as_json: Json = False
) -> None:
    """List prepared transactions, which wait for their manager, and those decided by hand.

    A prepared transaction keeps its messages from other consumers, and its journal files from
    being deleted. Its commit or rollback ends that.
    """
    found = ask(find_master(admin)["admin"], "transactions")["transactions"]
    below = () if found else ("no transaction is in doubt",)
    show(Listing(COLUMNS, [_row(each) for each in found], found, below=below), as_json)


@app.command()
def commit(identifier: Identifier, admin: AdminAddresses = None, _token: AdminToken = None) -> None:
    """Commit a prepared transaction for good (a heuristic commit).

    The manager learns of it (XA_HEURCOM) when it asks, until the broker ends.
    """
    _decide(identifier, "commit", admin)
    print(f"committed {identifier}")


@app.command()
def rollback(
    identifier: Identifier, admin: AdminAddresses = None, _token: AdminToken = None
) -> None:
    """Roll a prepared transaction back for good (a heuristic rollback).

    The manager learns of it (XA_HEURRB) when it asks, until the broker ends.
    """
    _decide(identifier, "rollback", admin)
    print(f"rolled back {identifier}")


def _decide(identifier: str, outcome: str, admin: list[str] | None) -> None:
    request = {"transaction": identifier, "outcome": outcome}
    ask(find_master(admin)["admin"], "transactions", request)


def _row(transaction: dict[str, Any]) -> tuple[str, ...]:
    parts = (_messages(transaction.get(part, {})) for part in ("sent", "consumed"))
    return (transaction["transaction"], transaction["state"], *parts)


def _messages(counts: dict[str, int]) -> str:
    """Return how many messages of which destinations, `-` for none."""
    return ", ".join(f"{counted(count, 'message')} {name}" for name, count in counts.items()) or "-"
