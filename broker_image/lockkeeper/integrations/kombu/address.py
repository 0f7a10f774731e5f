"""Addresses: what a kombu connection says of its broker, in the words of our client."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

from lockkeeper.client.errors import BrokerUrlError
from lockkeeper.client.tls import TlsOptions
from lockkeeper.client.url import DEFAULT_PORT, DEFAULT_TLS_PORT

_SCHEMES = {"openwire+ssl://": "ssl://", "openwire://": "tcp://"}
_PASSWORD_OPTION = re.compile(r"(jms\.password=)[^&)]*")
_PASSWORD = re.compile(r"(://[^/:@()?]*:)[^/@()?]*@")


class KombuConnection(Protocol):
    """The broker as `kombu.Connection` names it."""

    hostname: str | None
    port: int | None
    userid: str | None
    password: Any
    ssl: Any


@dataclass(frozen=True, slots=True)
class Target:
    """Arguments of `lockkeeper.client.connect`."""

    url: str
    user: str | None = None
    password: str | None = None
    tls: TlsOptions | None = None


def target_of(connection: KombuConnection, encrypted: bool = False) -> Target:
    """Return where a kombu connection leads. Raises BrokerUrlError, which is a ValueError."""
    encrypted = encrypted or bool(connection.ssl)
    host = connection.hostname or "localhost"
    tls = _tls_options(connection.ssl)
    password = connection.password() if callable(connection.password) else connection.password
    if host.startswith("failover:"):
        return Target(_in_our_schemes(host), connection.userid, password, tls)
    if "://" not in host:
        scheme, usual = ("ssl", DEFAULT_TLS_PORT) if encrypted else ("tcp", DEFAULT_PORT)
        url = f"{scheme}://{host}:{connection.port or usual}"
        return Target(url, connection.userid, password, tls)
    user, its_password, url = _split_user(_in_our_schemes(host))
    if encrypted:
        url = url.replace("tcp://", "ssl://", 1)
    return Target(url, user or connection.userid, its_password or password, tls)


def masked(uri: str, mask: str | None) -> str:
    """Return a URI without its passwords."""
    shown = mask or ""
    without = _PASSWORD.sub(rf"\g<1>{shown}@", uri)
    return _PASSWORD_OPTION.sub(rf"\g<1>{shown}", without)


def _in_our_schemes(url: str) -> str:
    for theirs, ours in _SCHEMES.items():
        url = url.replace(theirs, ours)
    return url


def _split_user(url: str) -> tuple[str | None, str | None, str]:
    """Return user, password, and the URL without them and without an empty virtual host."""
    parts = urlsplit(url)
    if parts.path.strip("/"):
        raise BrokerUrlError(f"there are no virtual hosts, so {parts.path!r} leads nowhere")
    user, password = parts.username, parts.password
    where = parts.netloc.rpartition("@")[2] or "localhost"
    return (
        None if user is None else unquote(user),
        None if password is None else unquote(password),
        urlunsplit((parts.scheme, where, "", parts.query, "")),
    )


def _tls_options(ssl: Any) -> TlsOptions | None:
    """Return what `broker_use_ssl` says: True, or a dict as the ssl module's arguments."""
    if not isinstance(ssl, Mapping):
        return None
    files = {"ca_certs": "ca_file", "certfile": "certificate_file", "keyfile": "key_file"}
    settings: dict[str, Any] = {}
    for name, value in ssl.items():
        plain = name.removeprefix("ssl_")
        if plain in files:
            settings[files[plain]] = None if value is None else Path(value)
        elif plain == "check_hostname":
            settings["verify_host_name"] = bool(value)
        elif plain == "cert_reqs" and value:
            continue  # Certificates are always required.
        else:
            known = ", ".join((*files, "check_hostname"))
            raise BrokerUrlError(f"broker_use_ssl: {name}={value!r} is not one of {known}")
    return TlsOptions(**settings)
