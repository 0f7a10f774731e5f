import re

import pytest

from lockkeeper_api.wildcards import (
    NAME_PATTERN,
    WILDCARD_PATTERN,
    check_name,
    check_prefix,
    check_wildcard,
)

GOOD_NAMES = ["A", "ORDERS.EU.NEW", "a-b_c:d", "My Queue", "Q/1", "ünïcode.Ω"]
GOOD_WILDCARDS = [*GOOD_NAMES, ">", "*", "A.>", "A.*", "*.B", "A.*.C", "*.*.>"]
BAD = {
    "A.>.B": "'>' must be the last level",
    "A*": r"'\*' must stand alone in its level, found 'A\*'",
    "A.B*.C": "must stand alone",
    "A>": "'>' must stand alone",
    "A.>>": "'>' must stand alone",
    "A..B": "has an empty level",
    ".A": "has an empty level",
    "A.": "has an empty level",
    "": "has an empty level",
    "A,B": "lists several",
    "A. B": "white space",
    " A": "white space",
    "A\n": "white space",
    "queue://A": "without a scheme",
}


@pytest.mark.parametrize("pattern", GOOD_WILDCARDS)
def test_wildcards_and_names_are_accepted(pattern: str) -> None:
    assert check_wildcard(pattern) == pattern
    assert re.search(WILDCARD_PATTERN, pattern)


@pytest.mark.parametrize("pattern", BAD)
def test_a_bad_wildcard_is_refused_with_its_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match=BAD[pattern]):
        check_wildcard(pattern)


@pytest.mark.parametrize("pattern", [text for text in BAD if "://" not in text])
def test_the_pattern_of_the_definition_refuses_the_same(pattern: str) -> None:
    assert not re.search(WILDCARD_PATTERN.replace("$", r"\Z"), pattern)


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_names_are_accepted(name: str) -> None:
    assert check_name(name) == name
    assert re.search(NAME_PATTERN, name)


@pytest.mark.parametrize("name", ["A.*", ">", "A>"])
def test_a_name_has_no_wildcard(name: str) -> None:
    with pytest.raises(ValueError, match="has no wildcard"):
        check_name(name)
    assert not re.search(NAME_PATTERN, name)


def test_a_prefix_may_end_with_a_dot() -> None:
    assert check_prefix("DLQ.") == "DLQ."
    assert check_prefix("") == ""
    with pytest.raises(ValueError, match="empty level"):
        check_prefix("DLQ..")
