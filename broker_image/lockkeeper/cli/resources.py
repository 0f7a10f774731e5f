"""Choice of the Broker of a command: resources from files, one of them, options applied."""

from itertools import zip_longest
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

from pydantic import ValidationError

from lockkeeper.cli.errors import MISUSED, CommandError
from lockkeeper.server.configuration import Configuration, hash_of
from lockkeeper_api import Broker, combine, default_broker
from lockkeeper_api.broker import Admin, Listener

DATA_ROOT = Path("lockkeeper-data")
PROTOCOLS = get_args(Listener.model_fields["protocol"].annotation)


def load(files: list[Path], name: str | None) -> Configuration:
    """Return the Broker in *files* (the one called *name*, if several) and its Destinations.

    Without files: a Broker with every default. Raises InvalidResourceError or CommandError.
    """
    if not files:
        return Configuration(default_broker(name or "lockkeeper"))
    sources = [(str(path), path.read_bytes().decode("utf-8")) for path in files]
    resources = combine(sources)
    found = [broker for broker in resources.brokers if name in (None, broker.metadata.name)]
    where = ", ".join(map(str, files))
    if not found:
        wanted = f"no Broker called {name}" if name else "no Broker"
        raise CommandError(f"{where}: {wanted}", MISUSED)
    if len(found) > 1:
        names = ", ".join(broker.metadata.name for broker in found)
        raise CommandError(f"{where}: several Brokers ({names}); choose one by --name", MISUSED)
    return Configuration(found[0], resources.destinations_of(found[0]), hash_of(sources))


def data_directory(broker: Broker, chosen: Path | None) -> Path:
    """Return where the broker's journal lies."""
    return chosen or DATA_ROOT / broker.metadata.name


def with_addresses(broker: Broker, listen: list[str], admin: str | None) -> Broker:
    """Return *broker* with the addresses of the command line instead of its own.

    Each listener keeps its other settings; more addresses than it has get the defaults.
    """
    changes: dict[str, object] = {}
    if listen:
        own = zip_longest(listen, broker.spec.listeners[: len(listen)])
        changes["listeners"] = [_listener(address, listener) for address, listener in own]
    if admin is not None:
        host, port = _host_and_port(admin, f"http://{admin}")
        try:
            changes["admin"] = Admin(host=host, port=port)
        except ValidationError as error:
            raise _unfit(f"--admin {admin}", error) from error
    return broker.model_copy(update={"spec": broker.spec.model_copy(update=changes)})


def _listener(address: str, like: Listener | None) -> Listener:
    scheme, separator, _ = address.partition("://")
    if scheme not in PROTOCOLS or not separator:
        ways = " or ".join(f"{protocol}://HOST:PORT" for protocol in PROTOCOLS)
        raise CommandError(f"--listen {address}: write {ways}", MISUSED)
    host, port = _host_and_port(address, address)
    # A listener keeps its name: its certificates lie under that.
    name = like.name if like else f"{scheme}-{port}"
    place = {"name": name, "protocol": scheme, "host": host, "port": port}
    try:
        return Listener.model_validate({**(like.model_dump() if like else {}), **place})
    except ValidationError as error:
        raise _unfit(f"--listen {address}", error) from error


def _host_and_port(shown: str, url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None:
        raise CommandError(f"{shown}: that is no HOST:PORT", MISUSED)
    return host, port


def _unfit(shown: str, error: ValidationError) -> CommandError:
    reasons = "; ".join(each["msg"] for each in error.errors(include_url=False))
    return CommandError(f"{shown}: {reasons}", MISUSED)
