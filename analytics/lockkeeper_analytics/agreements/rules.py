"""Rules such as `ORDERS.>: p99 > 5s for 10m`, from text.

    [DESTINATIONS: ] MEASURE > VALUE [ for DURATION]

MEASURE is `p50` or `p99` (time to acknowledgement), `lag` (age of the oldest message that waits),
`backlog` (messages that wait) or `dead-letter-rate`. VALUE is a duration, of `backlog` a number,
of `dead-letter-rate` a share of what came in (`1%`) or a number in a time (`10/m`). `>=` is there,
too. DESTINATIONS are names or wildcards, commas between.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from lockkeeper_analytics.errors import OptionError, RuleError
from lockkeeper_analytics.reading.asked import Pattern
from lockkeeper_analytics.tables.options import parse_destinations

DURATION = r"([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+"
NUMBER = r"[0-9]+(\.[0-9]+)?"
TIMES = ("p50", "p99", "lag")
LIMITS = {
    **dict.fromkeys(TIMES, DURATION),
    "backlog": NUMBER,
    "dead-letter-rate": rf"{NUMBER}(%|/[smhd])",
}
"""What each measure is compared with."""
EXAMPLES = {
    **dict.fromkeys(TIMES, "5s or 1m30s"),
    "backlog": "10000",
    "dead-letter-rate": "1% or 10/m",
}
REPORTS = {
    "p50": ("latency_over_time",),
    "p99": ("latency_over_time",),
    "lag": ("backlog_over_time",),
    "backlog": ("backlog_over_time",),
    "dead-letter-rate": ("rates",),
}
"""The reports that tell each measure."""
FORM = "[DESTINATIONS: ] MEASURE > VALUE [ for DURATION], such as: p99 > 5s for 10m"
RULES_MAX = 32

_RULE = re.compile(
    r"(?:(?P<names>\S.*?)\s*:\s+)?(?P<measure>[\w-]+)\s*(?P<sign>[<>=!]+)\s*(?P<limit>\S+)"
    r"(?:\s+for\s+(?P<lasting>\S+))?"
)
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class Rule:
    """A limit that a measure of destinations must not pass for longer than *seconds*.

    *limit* is in ms, in messages, or for `dead-letter-rate` a share of 1, or where *is_share* does
    not say so messages a second. Without *destinations* it is about all but dead letter queues.
    """

    text: str
    measure: str
    limit: float
    is_included: bool
    seconds: float
    destinations: tuple[Pattern, ...] = ()
    is_share: bool = False

    @property
    def is_counted(self) -> bool:
        """Whether it is about a number of messages in a time."""
        return self.measure == "dead-letter-rate" and not self.is_share


def parse_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that *texts* say; raises RuleError."""
    if len(texts) > RULES_MAX:
        raise RuleError(f"{len(texts)} rules: at most {RULES_MAX} can be given")
    return tuple(map(parse_rule, texts))


def parse_rule(text: str) -> Rule:
    """Return the rule that *text* says; raises RuleError, which tells what was expected."""
    said = " ".join(text.split())
    found = _RULE.fullmatch(said)
    if found is None:
        raise RuleError(f"rule {text!r}: expected {FORM}")
    measure, sign, limit = found["measure"], found["sign"], found["limit"]
    if measure not in LIMITS:
        known = ", ".join(LIMITS)
        raise RuleError(f"rule {text!r}: no measure {measure!r} (known: {known})")
    if sign not in (">", ">="):
        raise RuleError(f"rule {text!r}: expected > or >= behind {measure}, not {sign}")
    if not re.fullmatch(LIMITS[measure], limit):
        example = EXAMPLES[measure]
        raise RuleError(f"rule {text!r}: {measure} is compared with {example}, not {limit!r}")
    lasting = found["lasting"]
    if lasting is not None and not re.fullmatch(DURATION, lasting):
        raise RuleError(f"rule {text!r}: expected a duration such as 10m behind `for`")
    names = found["names"]
    most, seconds = _limit(measure, limit), 0.0 if lasting is None else _seconds(lasting)
    if not (isfinite(most) and isfinite(seconds)):
        raise RuleError(f"rule {text!r}: a number in it is too large")
    return Rule(
        text=said,
        measure=measure,
        limit=most,
        is_included=sign == ">=",
        seconds=seconds,
        destinations=() if names is None else _destinations(said, names),
        is_share=limit.endswith("%"),
    )


def reports_of(rules: Sequence[Rule]) -> set[str]:
    """Return the names of the reports that *rules* are held against."""
    return {name for rule in rules for name in REPORTS[rule.measure]}


def _destinations(rule: str, names: str) -> tuple[Pattern, ...]:
    try:
        return parse_destinations(names)
    except OptionError as error:
        raise RuleError(f"rule {rule!r}: {error}") from None


def _limit(measure: str, text: str) -> float:
    if measure in TIMES:
        return 1000 * _seconds(text)
    if text.endswith("%"):
        return float(text[:-1]) / 100
    number, _, each = text.partition("/")
    return float(number) / (_SECONDS[each] if each else 1)


def _seconds(text: str) -> float:
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
