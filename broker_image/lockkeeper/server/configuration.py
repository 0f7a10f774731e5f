"""Configuration of a process: resources with the text they were read from, and what may change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lockkeeper_api import Broker, Destination, InvalidResourceError, combine
from lockkeeper_api.broker import BrokerSpec
from lockkeeper_api.changes import LIVE, OPERATOR, POD, names, without
from lockkeeper_api.hashes import hash_of_text

TEXT_BYTES_MAX = 2 << 20
Sources: TypeAlias = Sequence[tuple[str, str]]
"""Names of files and their texts."""
_UNHEEDED = without(BrokerSpec, LIVE, POD, OPERATOR)


class RefusedConfigurationError(Exception):
    """A configuration cannot be taken over; the text says why, and nothing has changed."""


@dataclass(frozen=True)
class Configuration:
    """A Broker and its Destinations as their files say; `hash` is None without files."""

    broker: Broker
    destinations: Sequence[Destination] = ()
    hash: str | None = None


def read_configuration(sources: Sources, like: Broker) -> Configuration:
    """Return what files say of the Broker that is called as *like*.

    Raises RefusedConfigurationError.
    """
    try:
        resources = combine(sources)
    except InvalidResourceError as error:
        raise RefusedConfigurationError("; ".join(error.problems)) from error
    wanted = like.metadata
    for broker in resources.brokers:
        if (broker.metadata.name, broker.metadata.namespace) == (wanted.name, wanted.namespace):
            return Configuration(broker, resources.destinations_of(broker), hash_of(sources))
    found = ", ".join(broker.metadata.name for broker in resources.brokers) or "none"
    raise RefusedConfigurationError(f"metadata.name: expected Broker {wanted.name}, found {found}")


def read_files(files: Sequence[Path]) -> list[tuple[str, str]]:
    """Return names and texts of files. Raises RefusedConfigurationError."""
    try:
        return [(str(path), path.read_bytes().decode("utf-8")) for path in files]
    except (OSError, ValueError) as error:
        raise RefusedConfigurationError(f"cannot be read: {error}") from error


def hash_of(sources: Sources) -> str:
    """Return the hash of a file's text; of several files, of all their texts in a row."""
    return hash_of_text("".join(text for _, text in sources))


def check_change(old: Broker, new: Broker) -> None:
    """Make sure that a running process can go from *old* to *new*.

    Raises RefusedConfigurationError with what needs a restart.
    """
    fields = list(_changed_fields(old.spec, new.spec))
    if fields:
        raise RefusedConfigurationError(f"needs a restart: {', '.join(fields)}")


def _changed_fields(old: BrokerSpec, new: BrokerSpec) -> Iterator[str]:
    before, after = (each.model_dump(exclude=_UNHEEDED) for each in (old, new))
    for name, value in before.items():
        if value != after[name]:
            yield f"spec.{BrokerSpec.model_fields[name].alias or name}"


def changed(running: Broker, new: Broker) -> Broker:
    """Return *running*, addresses of the command line included, with what is taken over."""
    update = {name: getattr(new.spec, name) for name in names(BrokerSpec, LIVE)}
    return running.model_copy(update={"spec": running.spec.model_copy(update=update)})
