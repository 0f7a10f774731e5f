"""Configuration of brokers under test: the resources of a file, or the defaults for tests."""

from functools import cache
from pathlib import Path

from lockkeeper.server.configuration import (
    Configuration,
    RefusedConfigurationError,
    Sources,
    read_files,
)
from lockkeeper_api import InvalidResourceError, combine

DEFAULTS = """\
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {name: test}
spec:
  scheduler: {enabled: true}
"""


def configuration(file: Path | None) -> Configuration:
    """Return what *file* says, or the defaults. Raises RefusedConfigurationError."""
    return _defaults() if file is None else _read(read_files([file]))


@cache
def _defaults() -> Configuration:
    """Return the defaults, which are read once: that takes as long as the start of a broker."""
    return _read([("defaults", DEFAULTS)])


def _read(sources: Sources) -> Configuration:
    try:
        resources = combine(sources)
    except InvalidResourceError as error:
        raise RefusedConfigurationError("; ".join(error.problems)) from error
    if len(resources.brokers) != 1:
        named = ", ".join(name for name, _ in sources)
        raise RefusedConfigurationError(
            f"{named}: expected one Broker, found {len(resources.brokers)}"
        )
    (broker,) = resources.brokers
    return Configuration(broker, resources.destinations_of(broker))
