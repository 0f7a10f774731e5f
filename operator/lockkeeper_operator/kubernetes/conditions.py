"""Verdicts to conditions: since when each has been so."""

from collections.abc import Iterable
from typing import Any

from lockkeeper_api.status import Condition
from lockkeeper_operator.kubernetes.verdict import Verdict

MESSAGE_CHARACTERS_MAX = 32_768


def dated(
    verdicts: Iterable[Verdict], previous: dict[str, Any], generation: int, now: str
) -> list[Condition]:
    """Return the conditions; one whose status is what it was keeps its time.

    *previous* is the status that is there, *now* a time as RFC 3339 has it.
    """
    times = {
        each["type"]: (each["status"], each["lastTransitionTime"])
        for each in previous.get("conditions", ())
    }
    return [_dated(verdict, times.get(verdict.type), generation, now) for verdict in verdicts]


def _dated(
    verdict: Verdict, before: tuple[str, str] | None, generation: int, now: str
) -> Condition:
    same = before is not None and before[0] == verdict.status
    return Condition(
        type=verdict.type,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message[:MESSAGE_CHARACTERS_MAX],
        last_transition_time=before[1] if same and before is not None else now,
        observed_generation=generation,
    )
