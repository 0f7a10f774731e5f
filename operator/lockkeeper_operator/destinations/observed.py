"""Observed state of a Destination, as far as a plan needs to know it."""

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

DeletionPolicy: TypeAlias = Literal["Retain", "DeleteIfEmpty", "Delete"]


class BrokerState(Enum):
    """What can be said of a Destination's Broker."""

    GONE = "gone"
    """It, or its namespace, is not there or being deleted."""
    SILENT = "silent"
    """It is there, and no master answers: failing over, hibernated, cut off."""
    LOST = "lost"
    """It is silent for so long that nobody is kept waiting any more."""
    ANSWERS = "answers"
    """Its master answers."""


@dataclass(frozen=True, slots=True)
class DestinationState:
    """A Destination and what its broker has.

    What the broker has (*exists*, *empty*, *in_sync*) counts only while it answers. *accepted*
    says that the destination is this resource's. *purge* is the value of the annotation that asks
    for a purge.
    """

    name: str
    policy: DeletionPolicy = "Retain"
    deleting: bool = False
    finalizer: bool = False
    accepted: bool = True
    broker: BrokerState = BrokerState.ANSWERS
    exists: bool = False
    empty: bool = False
    in_sync: bool = False
    purge: str | None = None
