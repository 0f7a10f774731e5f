"""Kubernetes events for people, with reasons that never change their meaning."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Event:
    """One event: of note or not, one word for tools, a sentence for people."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
