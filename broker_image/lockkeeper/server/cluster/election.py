"""Election by a Lease, decided from what was seen of it, by this machine's clock only.

The times that stand in a Lease are for people. What counts is when this process saw it change:
clocks of two machines need not agree, they only need to run at about the same speed. All times
here are in ns of `boot_time`.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

SECOND_NS = 1_000_000_000
EPOCH_MAX = 2**31 - 1
"""leaseTransitions is a 32-bit number."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """Contents of a Lease; *renewed* and *acquired* as it writes times, *uid* of the object."""

    uid: str = ""
    holder: str = ""
    epoch: int = 0
    duration_seconds: int = 0
    acquired: str = ""
    renewed: str = ""


def read_lease(lease: dict[str, Any]) -> LeaseRecord:
    """Return what *lease*, a Lease in the API's JSON, says; what it leaves out is empty."""
    spec = lease.get("spec") or {}
    return LeaseRecord(
        str(lease["metadata"].get("uid", "")),
        spec.get("holderIdentity") or "",
        int(spec.get("leaseTransitions") or 0),
        int(spec.get("leaseDurationSeconds") or 0),
        spec.get("acquireTime") or "",
        spec.get("renewTime") or "",
    )


def written_lease(lease: dict[str, Any], record: LeaseRecord) -> dict[str, Any]:
    """Return *lease* with *record* in it, to be put in its place."""
    spec = {
        **(lease.get("spec") or {}),
        "holderIdentity": record.holder,
        "leaseTransitions": record.epoch,
        "leaseDurationSeconds": record.duration_seconds,
        "renewTime": record.renewed,
    }
    if record.acquired:
        spec["acquireTime"] = record.acquired
    return {**lease, "spec": spec}


class Election:
    """One candidate's view of the Lease."""

    def __init__(self, identity: str, duration: int) -> None:
        """A holder that has been silent for *duration* ns is taken for dead."""
        self._identity = identity
        self._duration = duration
        self._seen = LeaseRecord()
        self._changed_at: int | None = None

    @property
    def seen(self) -> LeaseRecord:
        """Contents of the Lease when it was last read."""
        return self._seen

    def observe(self, record: LeaseRecord, now: int) -> None:
        """Note what the Lease says *now*."""
        if record != self._seen or self._changed_at is None:
            self._seen, self._changed_at = record, now

    def silence(self, now: int) -> int | None:
        """Return for how many ns the Lease has been as it is, None if it was never seen."""
        return None if self._changed_at is None else now - self._changed_at

    def may_take(self, now: int) -> bool:
        """Tell whether nobody else can believe to hold it.

        A holder of our own name was an earlier process in the same pod, which is dead. Another
        one is given the time that it was promised, if that is longer than what we have.
        """
        if self._changed_at is None:
            return False
        if self._seen.holder in ("", self._identity):
            return True
        promised = max(self._duration, self._seen.duration_seconds * SECOND_NS)
        return now - self._changed_at >= promised

    def claim(self, epoch_min: int, written_at: str) -> LeaseRecord:
        """Return what to write in order to take it, with the next epoch, *epoch_min* at least."""
        epoch = max(self._seen.epoch + 1, epoch_min)
        return LeaseRecord(
            self._seen.uid,
            self._identity,
            min(epoch, EPOCH_MAX),
            math.ceil(self._duration / SECOND_NS),
            written_at,
            written_at,
        )

    def is_still(self, record: LeaseRecord, own: LeaseRecord) -> bool:
        """Tell whether *record* is the Lease that we hold, or nobody's: written anew, empty.

        A Lease that was deleted, and then made again by the operator, has another uid. One that
        somebody has emptied by hand is not ours any more: that is how people end a master.
        """
        if record.holder == own.holder and record.epoch == own.epoch:
            return True
        return record.uid != own.uid and not record.holder and not record.epoch


def renewed(record: LeaseRecord, written_at: str, epoch: int = 0) -> LeaseRecord:
    """Return *record* as it is to be written again, with a higher *epoch* if one is given."""
    return replace(record, renewed=written_at, epoch=max(record.epoch, epoch))


def freed(record: LeaseRecord, written_at: str) -> LeaseRecord:
    """Return *record* as it is to be written when nobody holds the Lease any more."""
    return replace(record, holder="", renewed=written_at)
