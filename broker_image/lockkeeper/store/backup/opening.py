"""A copy of a journal opened as a broker would open it, to know that it can be."""

from pathlib import Path

from lockkeeper.store.base import Recovered
from lockkeeper.store.kahadb.recovery import replay_directory


def open_journal(directory: Path) -> Recovered:
    """Return what a broker finds in *directory*; nothing is changed. Raises StoreError."""
    return replay_directory(directory).recovered if directory.exists() else Recovered()


def count_pending(recovered: Recovered) -> int:
    """Return how many messages wait, on a topic once for each subscription."""
    queued = sum(len(references) for references in recovered.queues.values())
    return queued + sum(len(each.pending) for each in recovered.subscriptions)
