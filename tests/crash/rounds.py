"""One round of a crash test: load on a broker, its death, and what its journal looks like then."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ledger import Ledger
from load import Actor, start_all

from lockkeeper.cli.main import main

if TYPE_CHECKING:
    from brokers import RunningBroker

JOIN_SECONDS = 30


def run_under_load(ledger: Ledger, broker: "RunningBroker", seed: str, seconds: float) -> None:
    """Put a broker under load and kill it in the midst of it."""
    crowd = start_all(ledger, broker.port, seed)
    time.sleep(seconds)
    broker.kill()
    join(crowd)


def join(crowd: list[Actor]) -> None:
    """Wait for actors whose broker is gone."""
    for actor in crowd:
        actor.stopping.set()
    for actor in crowd:
        actor.join(JOIN_SECONDS)
        assert not actor.is_alive(), f"{actor.name} hangs"


def verify(directory: Path) -> None:
    """Check that the journal is sound; a torn tail is what a kill may leave."""
    assert main(["journal", "verify", str(directory)]) == 0
