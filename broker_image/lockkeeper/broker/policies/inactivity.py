"""Inactivity: whether a destination that nobody uses any more is removed, and when."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InactivityPolicy:
    """ActiveMQ's attributes of a policyEntry, with its defaults; the timeout is in ms."""

    gc_inactive_destinations: bool = False
    inactive_timeout_before_gc: int = 60_000
