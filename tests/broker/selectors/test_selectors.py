"""What the golden file cannot show: errors, limits, speed of bad patterns, identifiers."""

import inspect
import math
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockkeeper.broker.selectors import InvalidSelectorError, Value, compile_selector, like

PROPERTIES: dict[str, Value] = {
    "i": 5, "f": 2.5, "s": "abc", "yes": True, "max": 2**63 - 1, "straße": "Gasse",
    "JMSPriority": 9, "nan": math.nan,
}  # fmt: skip


def matches(selector: str) -> bool:
    return compile_selector(selector).matches(PROPERTIES.get)


@pytest.mark.parametrize(
    ("selector", "position", "problem"),
    [
        ("i = ", 4, "found the end of the selector"),
        ("a LIKE 5", 7, "expected a string after LIKE, found '5'"),
        ("a = 'open", 4, "no closing quote"),
        ("a == 5", 3, "expected a literal, an identifier"),
        ("a ! 5", 2, "found '!'"),
        ("a = 5 b", 6, "expected an operator or the end of the selector, found 'b'"),
        ("(a = 5", 6, "expected ), found the end of the selector"),
        ("a NOT 5", 6, "expected LIKE, IN or BETWEEN after NOT, found '5'"),
        ("a NOT NULL", 6, "expected LIKE, IN or BETWEEN"),
        ("a IS 5", 5, "expected NULL or NOT NULL"),
        ("a IS NOT 5", 9, "expected NULL, found '5'"),
        ("a BETWEEN 1 OR 2", 12, "expected AND, found 'OR'"),
        ("s IN (1)", 6, "expected a string after (, found '1'"),
        ("'a' IN ('a')", 4, "IN needs an identifier"),
        ("a > 'x'", 2, "> compares numbers only"),
        ("a = NULL", 2, "use IS NULL"),
        ("a + 1", 0, "expected a condition, found an arithmetic expression"),
        ("b = 1 AND a + 1", 6, "expected a condition"),
        ("a = 08", 4, "expected a number, found '08'"),
        ("a = 5x", 4, "expected a number, found '5x'"),
        ("XPATH '//a'", 0, "XPATH selectors are not supported"),
        ("a LIKE 'x' ESCAPE 'yy'", 2, "ESCAPE needs one character"),
    ],
)
def test_an_error_says_where_and_what_was_expected(
    selector: str, position: int, problem: str
) -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        compile_selector(selector)
    assert caught.value.position == position
    assert problem in str(caught.value)
    assert f"character {position + 1}:" in str(caught.value)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("i = 5 -- the end needs no new line", True),
        ("max + 1 < 0", True),
        ("i = 5D", False),
        ("f = 2.5d AND f = 2.5F", True),
        ("i = 0x5L AND 05L = i", True),
        ("straße = 'Gasse'", True),
        ("nan = nan", True),
        ("nan > i", True),
        ("NOT NOT yes", True),
        ("NOT yes AND yes", False),
        ("i = NOT yes", False),
        ("s + 1e10 = 'abc1.0E10'", True),
        ("s + 0.00012 = 'abc1.2E-4'", True),
        ("s + 12345678.5 = 'abc1.23456785E7'", True),
        ("s + -0.5 = 'abc-0.5'", True),
        ("  ", True),
    ],
)
def test_what_lies_beyond_the_golden_file(selector: str, expected: bool) -> None:
    if "5D" in selector:
        with pytest.raises(InvalidSelectorError):
            compile_selector(selector)
    else:
        assert matches(selector) is expected


def test_identifiers_are_collected_so_that_only_those_need_decoding() -> None:
    selector = compile_selector("JMSPriority > 3 AND (s IN ('a') OR NOT f BETWEEN i AND 7)")
    assert selector.identifiers == {"JMSPriority", "s", "f", "i"}


def test_a_selector_is_compiled_once() -> None:
    assert compile_selector("i = 5 AND s = 'abc'") is compile_selector("i = 5 AND s = 'abc'")


def test_a_text_that_is_too_long_is_refused() -> None:
    longest = "i = 5" + " " * (65_536 - 5)
    assert matches(longest)
    with pytest.raises(InvalidSelectorError, match="longer than 65536 characters"):
        compile_selector(longest + " ")


@pytest.mark.parametrize(
    "selector",
    [
        "(" * 1500 + "yes" + ")" * 1500,
        "NOT " * 1500 + "yes",
        "- " * 1500 + "i = 5",
        "i" + " + 1" * 1500 + " = 5",
        "yes" + " = yes" * 1500,
        "yes" + " IS NULL" * 1500,
        "yes OR yes AND i = i + 2 * (" * 400,
    ],
)
def test_nesting_is_limited(selector: str) -> None:
    with pytest.raises(InvalidSelectorError, match="nested more than 200 deep"):
        compile_selector(selector)


def test_nesting_below_the_limit_evaluates_on_a_small_stack() -> None:
    assert matches("(" * 150 + "yes" + ")" * 150)
    assert matches("yes OR yes AND i = 5 + 0 * (" * 24 + "0" + ")" * 24)


def test_a_selector_of_many_alternatives_is_no_nesting() -> None:
    assert matches(" OR ".join(["s = 'x'"] * 1200 + ["s = 'abc'"]))
    assert not matches(" AND ".join(["s = 'abc'"] * 1200 + ["s = 'x'"]))


def test_a_like_pattern_does_not_backtrack() -> None:
    pattern = "%a" * 500 + "b"
    value = "a" * 60_000
    selector = compile_selector(f"v LIKE '{pattern}'")
    answers: list[bool] = []
    thread = threading.Thread(
        target=lambda: answers.append(selector.matches({"v": value}.get)), daemon=True
    )
    started = time.monotonic()
    thread.start()
    thread.join(10)
    assert answers == [False]
    assert time.monotonic() - started < 5
    assert selector.matches({"v": value + "b"}.get)


@given(
    value=st.text("ab", max_size=300),
    pattern=st.lists(st.sampled_from(["a", "_", "a_", "_b", "%"]), min_size=60, max_size=300),
)
def test_long_segments_mean_what_their_definition_says(value: str, pattern: list[str]) -> None:
    joined = f"%{''.join(pattern)}"
    selector = compile_selector(f"v LIKE '{joined}'")
    for text in (value, value + joined.replace("%", "b").replace("_", "a")):
        assert selector.matches({"v": text}.get) is like_by_definition(text, joined)


@pytest.mark.parametrize(
    "repeated", ["_", "a", "a_", "%a", "aa_"], ids=["any", "literal", "both", "many", "three"]
)
def test_a_longer_like_pattern_takes_no_longer(repeated: str) -> None:
    def seconds(length: int) -> float:
        selector = compile_selector(f"v LIKE '%{(repeated * length)[:length]}b%'")
        best = math.inf
        for _ in range(3):
            started = time.process_time()
            assert not selector.matches({"v": value}.get)
            best = min(best, time.process_time() - started)
        return best

    value = "a" * 200_000
    assert seconds(1_000) < 3 * seconds(200) + 0.02


@pytest.mark.replaces
@given(
    value=st.text("abд", max_size=40),
    pattern=st.lists(st.sampled_from(["a", "b", "д", "_", "_", "%"]), min_size=2, max_size=20),
)
def test_segments_in_pieces_mean_what_their_definition_says(value: str, pattern: list[str]) -> None:
    with pytest.MonkeyPatch.context() as small:
        small.setattr(like, "_COMPARED_MAX", 2)
        small.setattr(like, "_PIECE", 3)
        small.setattr(like, "_LOOKING_COMPARES", 4)
        joined = f"%{''.join(pattern)}%"
        matching = like.compile_like(joined, None)
        for text in (value, value + joined.replace("%", "b").replace("_", "a")):
            assert matching(text) is like_by_definition(text, joined)


ALPHABETS = [
    "abc",
    "äöü",
    "абв",
    "a\u00e4\u0430",
    "\U0001f600\U0001f601\U0001f700",
    "\ud800\udc00a",
]


@pytest.mark.parametrize("alphabet", ALPHABETS, ids=ascii)
@settings(max_examples=30)
@given(data=st.data())
def test_like_finds_what_there_is_in_a_long_string(alphabet: str, data: st.DataObject) -> None:
    one, other, filler = list(alphabet)
    segment = data.draw(st.text([one, other, "_"], min_size=2, max_size=40))
    found = data.draw(st.booleans())
    spoiled = segment.replace("_", one) if found else segment.replace("_", one)[:-1] + filler
    before = data.draw(st.integers(130_000 // len(segment), 200_000))
    text = filler * before + spoiled + filler * 45
    selector = compile_selector(f"v LIKE '%{segment}%'")
    fits = any(
        all(each in ("_", character) for each, character in zip(segment, text[at:], strict=False))
        for at in range(before - len(segment), before + len(spoiled) + 5)
    )
    assert selector.matches({"v": text}.get) is (fits or set(segment) == {"_"})


def test_like_finds_what_many_letters_are_in() -> None:
    letters = "".join(map(chr, range(0x400, 0x400 + 40)))
    segment = "_".join(letters * 10)
    near = segment.replace("_", "-")[:-1] + "-"
    selector = compile_selector(f"v LIKE '%{segment}%'")
    for before in (0, 1, 100_000):
        assert not selector.matches({"v": "-" * before + near * 200}.get)
        assert selector.matches({"v": "-" * before + near * 200 + segment + near}.get)


@pytest.mark.parametrize(
    "segment",
    [
        "a" * 129 + "_b",
        "a" * 998 + "_b",
        "_" + "a" * 120 + "b",
        "_a" * 60 + "b",
        "aab_" * 250 + "b",
    ],
    ids=["long", "longest", "any first", "any between", "three"],
)
def test_like_takes_no_longer_than_to_walk_through_a_string(segment: str) -> None:
    def seconds(action: Callable[[], object]) -> float:
        best = math.inf
        for _ in range(3):
            started = time.process_time()
            action()
            best = min(best, time.process_time() - started)
        return best

    value = segment[0].replace("_", "a") * 1_000_000
    selector = compile_selector(f"v LIKE '%{segment}%'")
    assert not selector.matches({"v": value}.get)
    walking = seconds(lambda: sum(1 for _ in value))
    assert seconds(lambda: selector.matches({"v": value}.get)) < 2.5 * walking


@pytest.mark.parametrize("count", [16, 32])
def test_like_compares_few_places_with_a_segment_of_many_letters(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[int] = []
    is_at = like.Segment.is_at

    def counted(segment: like.Segment, text: str, position: int) -> bool:
        places.append(position)
        return is_at(segment, text, position)

    monkeypatch.setattr(like.Segment, "is_at", counted)
    letters = "".join(map(chr, range(0x61, 0x61 + count)))
    segment = letters * (1008 // count) + "_Q"
    value = letters * (400_000 // count) + "Q"
    assert not like.compile_like(f"%{segment}%", None)(value)
    # To look for each letter in seven pieces takes as long as comparing so many characters.
    assert len(places) * len(segment) < 7 * (count + 1) * (1 << 15)


def test_a_long_like_pattern_is_refused() -> None:
    with pytest.raises(InvalidSelectorError, match="LIKE pattern has more than 1024 characters"):
        compile_selector(f"s LIKE '{'%' * 1025}'")


def test_a_string_cannot_grow_without_bound_while_evaluating() -> None:
    doubled = "(s + s)"
    for _ in range(9):
        doubled = f"({doubled} + {doubled})"
    assert not compile_selector(f"{doubled} IS NOT NULL").matches({"s": "x" * 4000}.get)


def like_by_definition(value: str, pattern: str) -> bool:
    """LIKE without escapes, straight from its definition, by dynamic programming."""
    reachable = {0}
    for character in pattern:
        if character == "%":
            reachable = set(range(min(reachable, default=len(value) + 1), len(value) + 1))
        else:
            reachable = {
                at + 1 for at in reachable if at < len(value) and character in ("_", value[at])
            }
    return len(value) in reachable


@given(value=st.text("ab_%.\n", max_size=12), pattern=st.text("ab_%.\n", max_size=10))
def test_like_means_what_its_definition_says(value: str, pattern: str) -> None:
    selector = compile_selector(f"v LIKE '{pattern}'")
    assert selector.matches({"v": value}.get) is like_by_definition(value, pattern)


WORDS = (
    "AND OR NOT BETWEEN LIKE ESCAPE IN IS NULL TRUE FALSE i f s yes missing 5 2.5 0x1F 9e999 "
    "'abc' '%' = <> < <= > >= + - * / % ( ) , /* */ -- ' $ 08 1L .5 'a' ?"
)
VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text()


@given(
    words=st.lists(st.sampled_from(WORDS.split()), max_size=25),
    properties=st.fixed_dictionaries(dict.fromkeys(("i", "f", "s", "yes"), VALUES)),
)
def test_only_the_documented_error_escapes(words: list[str], properties: dict[str, Value]) -> None:
    try:
        selector = compile_selector(" ".join(words))
    except InvalidSelectorError as error:
        assert 0 <= error.position <= len(" ".join(words))
    else:
        assert selector.matches(properties.get) in (True, False)


@given(st.text(max_size=60))
def test_arbitrary_text_is_refused_or_compiled(text: str) -> None:
    try:
        compile_selector(text)
    except InvalidSelectorError as error:
        assert error.text == text


def test_evaluation_leaves_room_on_the_stack() -> None:
    """A selector at the nesting limit needs less than half of Python's default stack."""
    deepest = "NOT " * 190 + "yes"
    before = sys.getrecursionlimit()
    depth = len(inspect.stack())
    sys.setrecursionlimit(depth + 480)
    try:
        assert matches(deepest)
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        (" OR ".join(["i = 5"] * 1251), "more than 5000 words and signs"),
        (" OR ".join(["s LIKE 'a'"] * 201), "more than 200 LIKE"),
        (
            " OR ".join(["s LIKE '%a_c%'"] * 21),
            "more than 20 LIKE with _ and letters between two %",
        ),
    ],
)
def test_what_takes_long_to_compile_is_refused(selector: str, problem: str) -> None:
    with pytest.raises(InvalidSelectorError, match=problem):
        compile_selector(selector)


def test_long_selectors_do_not_stay_in_memory() -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20):
            text = " OR ".join(f"property{each} = {number}" for each in range(200))
            assert compile_selector(text).matches({"property7": number}.get)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 500_000


def test_short_selectors_are_compiled_once() -> None:
    assert compile_selector("a = 1") is compile_selector("a = 1")
