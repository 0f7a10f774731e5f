"""`lockkeeper user`: passwords of users, for brokers that are started with --secrets."""

import getpass
import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from lockkeeper.cli.errors import misused

PASSWORD_VARIABLE = "LOCKKEEPER_PASSWORD"
SALT_BYTES = 16


def user(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.")],
    directory: Annotated[
        Path,
        typer.Option(
            "--secrets", file_okay=False, help="Directory of secrets; created if it is missing."
        ),
    ],
    remove: Annotated[bool, typer.Option("--remove", help="Remove the user.")] = False,
) -> None:
    """Set the password of a user, or remove the user; running brokers notice it.

    LOCKKEEPER_PASSWORD or standard input gives the password; a terminal is asked for it.

    Example: lockkeeper user anna --secrets secrets
    """
    from lockkeeper.server.secrets import USERS, read_users
    from lockkeeper_api.passwords import hashed

    if not name or ":" in name or any(character.isspace() for character in name):
        raise misused(f"{name!r}: a name has no colon and no white space")
    users = read_users(directory)
    if remove and users.pop(name, None) is None:
        raise misused(f"{directory / USERS}: there is no user {name}")
    if not remove:
        users[name] = hashed(_password(name), secrets.token_bytes(SALT_BYTES))
    _write(directory / USERS, "".join(f"{each}:{hash}\n" for each, hash in users.items()))
    print(f"{name} is {'removed' if remove else 'set'}")


def _password(name: str) -> str:
    """Return the password, from wherever no process list shows it."""
    given = os.environ.get(PASSWORD_VARIABLE)
    if given is None and sys.stdin.isatty():
        given = getpass.getpass(f"Password of {name}: ")
    elif given is None:
        given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise misused(
            "the password is empty: give LOCKKEEPER_PASSWORD, or a line on standard input"
        )
    return given


def _write(path: Path, text: str) -> None:
    """Replace a file at once; nobody else may read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
