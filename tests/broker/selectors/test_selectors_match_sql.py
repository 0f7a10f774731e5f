"""Selectors without parentheses mean what SQL says, NULL included: SQLite is asked, too.

NOT binds looser than comparisons, IN, LIKE and BETWEEN do, and tighter than AND.
"""

import random
import sqlite3
from collections.abc import Iterator

import pytest

from lockkeeper.broker.selectors import compile_selector

NUMBERS = (None, -1, 0, 1, 2)
TEXTS = (None, "", "a", "ab", "abc", "b_c")
PATTERNS = ("a%", "%b", "_", "a_c", "%", "", "b!_c")
SEEDS = 60
SELECTORS_PER_SEED = 50


def comparison(chance: random.Random) -> str:
    """Return a condition without AND, OR and NOT before it."""
    number, text = chance.choice("ij"), chance.choice("st")
    maybe_not = chance.choice(("", "NOT "))
    low, high = chance.randint(-2, 3), chance.randint(-2, 3)
    match chance.randrange(7):
        case 0:
            return f"{number} {chance.choice(('=', '<>', '<', '<=', '>', '>='))} {low}"
        case 1:
            return f"{number} {maybe_not}BETWEEN {low} AND {high}"
        case 2:
            listed = ", ".join(f"'{each}'" for each in chance.sample(TEXTS[1:], 2))
            return f"{text} {maybe_not}IN ({listed})"
        case 3:
            return f"{text} {maybe_not}LIKE '{chance.choice(PATTERNS)}' ESCAPE '!'"
        case 4:
            return f"{chance.choice((number, text))} IS {maybe_not}NULL"
        case 5:
            return f"{number} {chance.choice('+-*')} {low} {chance.choice(('<', '>='))} j"
    return f"{text} {chance.choice(('=', '<>'))} '{chance.choice(TEXTS[1:])}'"


def condition(chance: random.Random, depth: int) -> str:
    """Return a condition, with parentheses only now and then."""
    kind = chance.randrange(6) if depth else 0
    if kind in (0, 1):
        return comparison(chance)
    if kind == 2:
        return f"NOT {condition(chance, depth - 1)}"
    if kind == 3:
        return f"({condition(chance, depth - 1)})"
    word = chance.choice(("AND", "OR"))
    return f"{condition(chance, depth - 1)} {word} {condition(chance, depth - 1)}"


def rows(chance: random.Random) -> Iterator[dict[str, int | str | None]]:
    for _ in range(8):
        yield {
            "i": chance.choice(NUMBERS),
            "j": chance.choice(NUMBERS),
            "s": chance.choice(TEXTS),
            "t": chance.choice(TEXTS),
        }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_selector_means_what_sql_says(seed: int) -> None:
    chance = random.Random(seed)
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA case_sensitive_like = ON")
    for _ in range(SELECTORS_PER_SEED):
        text = condition(chance, 4)
        selector = compile_selector(text)
        for row in rows(chance):
            query = f"SELECT ({text}) FROM (SELECT :i AS i, :j AS j, :s AS s, :t AS t)"
            ((expected,),) = database.execute(query, row)
            assert selector.matches(row.get) == (expected == 1), (text, row, expected)
    database.close()


@pytest.mark.parametrize(
    "selector",
    ["NOT i BETWEEN 1 AND 2", "NOT s IN ('a')", "NOT s LIKE 'a%'", "NOT i = 7", "NOT i > 2"],
)
def test_not_binds_looser_than_what_it_is_before(selector: str) -> None:
    subject, rest = selector.removeprefix("NOT ").split(" ", 1)
    values: dict[str, int | str] = {"i": 1, "s": "a"}
    plain = compile_selector(f"{subject} {rest}").matches(values.get)
    assert compile_selector(selector).matches(values.get) is not plain
    assert not compile_selector(selector).matches(dict[str, int]().get)
