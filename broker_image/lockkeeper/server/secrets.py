"""The directory with what nobody else may read: users, certificates with their keys, the token.

    users                          lines NAME:HASH
    tls/LISTENER/tls.crt, tls.key  certificate chain and key, PEM; ca.crt for client certificates
    admin-tls/tls.crt, tls.key     the same for the admin endpoint of a pod
    admin-token                    what the admin endpoint wants to hear

In a pod that is a mounted Secret, which changes while the process runs.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from lockkeeper.server.cluster.identity import pod_identity
from lockkeeper.server.errors import CannotRunError
from lockkeeper_api.passwords import InvalidHashError, check_hash

IN_A_POD = Path("/etc/lockkeeper-secrets")
USERS = "users"
Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""Inode, time of change (ns) and size of each file; None for one that is not there."""


class InvalidSecretError(CannotRunError):
    """A file is not what it should be; the text names the file, and shows nothing of it."""


def secrets_directory(chosen: Path | None) -> Path | None:
    """Return the directory: the *chosen* one, or else that of a pod; None: there are no secrets.

    A pod has one, even if nothing is mounted there: then it lets nobody in.
    """
    if chosen is not None:
        return chosen
    return IN_A_POD if pod_identity(os.environ) is not None or IN_A_POD.is_dir() else None


def read_users(directory: Path) -> dict[str, str]:
    """Return the hashes of all passwords by user; no file: nobody. Raises InvalidSecretError."""
    path = directory / USERS
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InvalidSecretError(f"{path}: {_reason(error)}") from error
    users: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            name, hash = _user(line, f"{path}, line {number}")
            if name in users:
                raise InvalidSecretError(f"{path}, line {number}: a second user {name!r}")
            users[name] = hash
    return users


def _user(line: str, where: str) -> tuple[str, str]:
    name, separator, hash = line.strip().partition(":")
    if not separator or not name:
        raise InvalidSecretError(f"{where}: expected NAME:HASH")
    try:
        return name, check_hash(hash)
    except InvalidHashError as error:
        raise InvalidSecretError(f"{where}: the hash of {name!r}: {error}") from None


def signature(paths: Iterable[Path]) -> Signature:
    """Return what differs once one of the files has changed, also by a link that moved."""
    return tuple(map(_signature, paths))


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "it is no text in UTF-8"
