"""Questions to the admin endpoints of a Broker's replicas (HTTP, JSON)."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPException
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

import typer

from lockkeeper.cli.errors import CommandError, misused
from lockkeeper.cli.secrets import TOKEN_PATH, authorization, remember_token
from lockkeeper.server.roles import MASTER

DEFAULT_ADDRESSES = ("http://127.0.0.1:8161", "http://127.0.0.1:8162")
ANSWER_SECONDS_MAX = 2.0
ANSWER_BYTES_MAX = 64 * 1024 * 1024
REPLICAS_MAX = 64

AdminAddresses = Annotated[
    list[str] | None,
    typer.Option(
        "--admin",
        envvar="LOCKKEEPER_ADMIN",
        metavar="URL",
        help="Admin address of one replica, which names the others; may be given several "
        "times. Default: the first of http://127.0.0.1:8161 and :8162 that answers.",
    ),
]
AdminToken = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="LOCKKEEPER_ADMIN_TOKEN",
        metavar="TOKEN",
        callback=remember_token,
        help=f"Token of the admin endpoint; default: content of {TOKEN_PATH}.",
        show_envvar=True,
    ),
]
Status: TypeAlias = dict[str, Any]
"""What `/api/v1/status` says; of a replica that does not answer: `admin`, `role`, `error`."""

SILENT = "no answer"
# An environment's proxy has no business between a person and a local broker.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class AdminError(CommandError):
    """An admin endpoint does not answer, or not as it should; the text names its address."""


class TokenError(AdminError):
    """An admin endpoint wants another token, or one at all."""


def ask(address: str, path: str, order: dict[str, Any] | None = None) -> Any:
    """Return what the admin endpoint at *address* says, to an *order* if one is given.

    Raises AdminError.
    """
    url = f"{address}/api/v1/{path}"
    body = None if order is None else json.dumps(order).encode()
    headers = {"Content-Type": "application/json", **authorization()}
    request = urllib.request.Request(url, body, headers)
    try:
        with _opener.open(request, timeout=ANSWER_SECONDS_MAX) as answer:
            return json.loads(answer.read(ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        text = _refusal(error) or f"{url}: {error.code} {error.reason}"
        if error.code == HTTPStatus.UNAUTHORIZED:
            raise TokenError(f"{address}: {text}; give it by --token") from error
        raise AdminError(text) from error
    except urllib.error.URLError as error:
        raise AdminError(f"{address}: {_words(error.reason)}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise AdminError(f"{url}: no answer of a broker ({error})") from error


def replicas(addresses: Sequence[str] | None) -> list[Status]:
    """Return the status of every replica that *addresses* lead to, by name.

    Without addresses the first of the default ones that answers leads to its peers. Raises
    AdminError when nobody answers.
    """
    chosen = [_address(text) for text in addresses or ()]
    known = _ask_all(chosen) if chosen else _first_that_answers(DEFAULT_ADDRESSES)
    if not any(map(_answered, known)):
        raise nobody_answers(chosen or DEFAULT_ADDRESSES)
    asked = {*chosen, *(status["admin"] for status in known)}
    peers = {str(peer) for status in known for peer in status.get("peers", ())}
    return sorted(known + _ask_all(peers - asked), key=_place)


def find_master(addresses: Sequence[str] | None) -> Status:
    """Return the status of the master. Raises AdminError when there is none."""
    found = replicas(addresses)
    for status in found:
        if status["role"] == MASTER:
            return status
    roles = ", ".join(f"{status['admin']} is {status['role']}" for status in found)
    raise AdminError(f"there is no master ({roles})")


def nobody_answers(addresses: Sequence[str]) -> AdminError:
    """Return the error for addresses at which no broker is."""
    names = " or ".join(addresses)
    return AdminError(f"no broker answers at {names}; start one with `lockkeeper up`")


def _address(text: str) -> str:
    """Return the address that *text* names, as a URL without a path."""
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.path not in ("", "/"):
        raise misused(f"--admin {text}: write http://HOST:PORT")
    return f"{parts.scheme}://{parts.netloc}"


def _first_that_answers(addresses: Iterable[str]) -> list[Status]:
    for address in addresses:
        status = _status(address)
        if _answered(status):
            return [status]
    return []


def _ask_all(addresses: Iterable[str]) -> list[Status]:
    with ThreadPoolExecutor() as pool:
        return list(pool.map(_status, sorted(addresses)[:REPLICAS_MAX]))


def _status(address: str) -> Status:
    try:
        status = ask(address, "status")
    except TokenError:
        # All replicas have the same one, so there is no sense in asking others.
        raise
    except AdminError as error:
        return {"admin": address, "role": SILENT, "error": str(error)}
    if not isinstance(status, dict) or "role" not in status:
        return {"admin": address, "role": SILENT, "error": f"{address}: not a broker"}
    # Asked through a name or a forwarded port it still calls itself what it listens on.
    return status | {"admin": address}


def _answered(status: Status) -> bool:
    return bool(status["role"] != SILENT)


def _place(status: Status) -> tuple[bool, str, str]:
    """Return what replicas are sorted by: name, those that do not answer at the end."""
    return (not _answered(status), str(status.get("replica", "")), status["admin"])


def _refusal(error: urllib.error.HTTPError) -> str | None:
    """Return why the endpoint refused, in its own words if it had any."""
    try:
        return str(json.loads(error.read(ANSWER_BYTES_MAX))["error"])
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return None


def _words(reason: object) -> str:
    return (isinstance(reason, OSError) and reason.strerror) or str(reason)
