"""Lines of statistics in a journal count exactly what stands before them, also before a kill."""

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from audit import audit, subscribe
from ledger import DEAD_LETTERS, Ledger
from load import QUEUES, TOPIC, WORK
from rounds import run_under_load

from lockkeeper_analytics.sql import query

if TYPE_CHECKING:
    from brokers import RunningBroker

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.patient]

ROUNDS = 3
LOAD_SECONDS_MIN, LOAD_SECONDS_MAX = 1.5, 3.0
StartBroker = Callable[..., "RunningBroker"]

LINES = """
SELECT told.run, told.destination, told.position, enqueued, dequeued, never_written,
    count(*) FILTER (done.kind = 'add') AS added, count(*) FILTER (done.kind = 'remove') AS removed
FROM counted told LEFT JOIN applied_operations done
    ON done.destination = told.destination AND done.destination_kind = told.destination_kind
    AND done.position > run_position AND done.position < told.position
WHERE told.run > 0
GROUP BY ALL
ORDER BY ALL
"""


def test_lines_of_statistics_count_what_stands_before_them(
    start_broker: StartBroker, tmp_path: Path, seed: str
) -> None:
    chance, ledger, data = random.Random(seed), Ledger(), tmp_path / "data"
    for number in range(ROUNDS):
        broker = start_broker(file_bytes="1Gi", recorder="{statisticsInterval: 100ms}")
        if number:
            audit(ledger, broker.port, chance)
        else:
            subscribe(broker.port)
        seconds = chance.uniform(LOAD_SECONDS_MIN, LOAD_SECONDS_MAX)
        run_under_load(ledger, broker, f"{seed}-{number}", seconds)
    rows = pa.Table.from_batches(query.run(LINES, {"path": str(data)})).to_pylist()
    told = {(row["run"], row["destination"]) for row in rows if row["destination"] != DEAD_LETTERS}
    assert told == set(product(range(1, ROUNDS + 1), {*QUEUES, TOPIC} - {DEAD_LETTERS}))
    for row in rows:
        unadded, unremoved = row["enqueued"] - row["added"], row["dequeued"] - row["removed"]
        if row["destination"] == WORK:
            # Some are consumed before they are written; lines stand between the one and the other.
            assert unadded >= unremoved >= row["never_written"], row
        else:
            assert (unadded, unremoved) == (0, 0), row
