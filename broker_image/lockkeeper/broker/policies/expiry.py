"""Expiry: how often a destination looks for messages whose time is over while they wait."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExpiryPolicy:
    """ActiveMQ's settings, with its names and defaults.

    `expire_messages_period` is in ms, 0 for never: then only dispatch notices. So many as
    `max_expire_page_size` are ended, or read back from the disk to learn their time, at once.
    """

    expire_messages_period: int = 30_000
    max_expire_page_size: int = 400
