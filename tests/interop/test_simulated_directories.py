"""What simulated pairs leave after a life of faults, a real ActiveMQ opens, and has all of it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import brokers
import pytest
from contents import Subscriber, ids, in_doubt, queue_contents, subscription_contents
from ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]

RUN = Path(__file__).parents[1] / "simulation" / "run.py"
FILE_BYTES = 65536
# What cannot be read is no matter of the books, and what expires goes on doing so.
SILENCED = ["Vandal", "ExpiringProducer"]


@contextmanager
def activemq(home: Path, data: Path) -> Iterator[brokers.RunningBroker]:
    port = free_port()
    home.mkdir()
    command = brokers.activemq_command(home, port, data, FILE_BYTES)
    broker = brokers.RunningBroker("activemq", port, home, command)
    try:
        yield broker
    finally:
        broker.kill()


@pytest.mark.parametrize("seed", range(20_000, 20_002))
def test_activemq_has_everything_that_a_simulated_pair_left(seed: int, tmp_path: Path) -> None:
    reason = brokers.missing("activemq")
    if reason:
        pytest.skip(reason)
    options = json.dumps({"keep": str(tmp_path), "silenced": SILENCED})
    command = [sys.executable, str(RUN), "--replay", str(seed), "--options", options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    expected: dict[str, list[str]] = json.loads((tmp_path / "books.json").read_text())
    assert sum(map(len, expected.values())) > 0
    found = {}
    with activemq(tmp_path / "home", tmp_path) as broker:
        for place in expected:
            topic, _, client = place.partition("/")
            if client:
                subscriber = Subscriber(client, "all", topic)
                found[place] = ids(subscription_contents(broker.port, subscriber))
            else:
                found[place] = ids(queue_contents(broker.port, place))
        prepared = in_doubt(broker.port)
    assert prepared == []
    assert {place: sorted(names) for place, names in found.items()} == {
        place: sorted(names) for place, names in expected.items()
    }
