"""Rules of analyses: the resource takes what the program takes, and nothing else."""

import re
from typing import get_args

import pytest

from lockkeeper_analytics.agreements.rules import RULES_MAX as PROGRAM_RULES_MAX
from lockkeeper_analytics.agreements.rules import parse_rule
from lockkeeper_analytics.errors import RuleError
from lockkeeper_api.analysis.agreements import RULES_MAX, Rule

PATTERN = re.compile(
    next(each.pattern for each in get_args(Rule)[1].metadata if hasattr(each, "pattern"))
)
TEXTS = [
    f"{names}{measure}{sign}{limit}{lasting}"
    for names in ("", "ORDERS.>: ", "queue://A,B: ", "X:")
    for measure in ("p50", "p99", "lag", "backlog", "dead-letter-rate", "p95", "")
    for sign in (" > ", ">=", " < ", " ")
    for limit in ("5s", "1m30s", "10", "0.5%", "3/m", "-1s", "ever")
    for lasting in ("", " for 10m", " for ever", " for 5")
]


def is_rule(text: str) -> bool:
    try:
        parse_rule(text)
    except RuleError:
        return False
    return True


def test_both_take_the_same_rules() -> None:
    taken = [text for text in TEXTS if is_rule(text)]
    assert len(taken) > 100
    assert [text for text in TEXTS if PATTERN.search(text)] == taken
    assert RULES_MAX == PROGRAM_RULES_MAX


@pytest.mark.parametrize("text", ["p99 > 5s\n", "\np99 > 5s"])
def test_a_rule_is_one_line(text: str) -> None:
    assert PATTERN.fullmatch(text) is None
