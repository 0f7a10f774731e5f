"""One condition, before it is known since when it has been so."""

from dataclasses import dataclass

from lockkeeper_api.status import ConditionStatus

YES: ConditionStatus = "True"
NO: ConditionStatus = "False"
UNKNOWN: ConditionStatus = "Unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something is so, and why: a word for tools, a sentence for people."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
