"""Parts of a selector compiled to closures.

A part knows what it may stand beside (its role), how deep its closures nest, and how to evaluate
itself with a lookup. There is no tree to walk when a message is matched.
The builders raise ValueError with the reason when a part may not stand where it does; the parser
adds the position.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from lockkeeper.broker.selectors import values
from lockkeeper.broker.selectors.like import PATTERN_CHARACTERS_MAX, compile_like
from lockkeeper.broker.selectors.values import Evaluate, Lookup, Value

DEPTH_MAX = 200
"""How deep closures may nest, so that evaluation stays far from Python's recursion limit."""


class Role(Enum):
    """Kind of a part, as the rules of the language distinguish them."""

    CONSTANT = "a literal"
    PROPERTY = "an identifier"
    ARITHMETIC = "an arithmetic expression"
    CONDITION = "a condition"


@dataclass(frozen=True, slots=True)
class Part:
    """One compiled part; *constant* is the value of a literal, *name* that of a property."""

    role: Role
    evaluate: Evaluate
    depth: int = 1
    constant: Value = None
    name: str = ""


def _part(role: Role, evaluate: Evaluate, *children: Part) -> Part:
    """Return a part over *children*; ValueError when it nests too deeply."""
    depth = 1 + max(child.depth for child in children)
    if depth > DEPTH_MAX:
        raise ValueError(f"expressions are nested more than {DEPTH_MAX} deep")
    return Part(role, evaluate, depth)


def constant(value: Value) -> Part:
    """Return a literal."""
    return Part(Role.CONSTANT, lambda _lookup: value, constant=value)


def named(name: str) -> Part:
    """Return the header or property called *name*."""
    return Part(Role.PROPERTY, lambda lookup: lookup(name), name=name)


def condition(part: Part) -> Part:
    """Return *part* as a condition: a property counts when it is the boolean true."""
    if part.role is Role.CONDITION:
        return part
    if part.role is Role.CONSTANT and (part.constant is None or isinstance(part.constant, bool)):
        return part
    if part.role is not Role.PROPERTY:
        raise ValueError(f"expected a condition, found {part.role.value}")
    evaluate = part.evaluate

    def truth(lookup: Lookup) -> Value:
        value = evaluate(lookup)
        return None if value is None else value is True

    return _part(Role.CONDITION, truth, part)


def conjunction(parts: Sequence[Part]) -> Part:
    """Return the AND of conditions: false beats unknown, unknown beats true."""
    evaluations = tuple(condition(part).evaluate for part in parts)

    def all_of(lookup: Lookup) -> Value:
        result: Value = True
        for evaluate in evaluations:
            value = evaluate(lookup)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return _part(Role.CONDITION, all_of, *parts)


def disjunction(parts: Sequence[Part]) -> Part:
    """Return the OR of conditions: true beats unknown, unknown beats false."""
    evaluations = tuple(condition(part).evaluate for part in parts)

    def any_of(lookup: Lookup) -> Value:
        result: Value = False
        for evaluate in evaluations:
            value = evaluate(lookup)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return _part(Role.CONDITION, any_of, *parts)


def negation(part: Part) -> Part:
    """Return the NOT of a condition; unknown stays unknown."""
    evaluate = condition(part).evaluate

    def inverted(lookup: Lookup) -> Value:
        value = evaluate(lookup)
        return None if value is None else not value

    return _part(Role.CONDITION, inverted, part)


def equality(left: Part, right: Part, convert: bool) -> Part:
    """Return `left = right`.

    ActiveMQ's answers where a side is null: an unknown left side is unknown, an unknown right
    side is false, and two of them are equal.
    """
    for part in (left, right):
        if part.role is Role.CONSTANT and part.constant is None:
            raise ValueError("NULL cannot be compared, use IS NULL")
    right_is_other = right.role is Role.CONSTANT and not isinstance(right.constant, bool)
    if isinstance(left.constant, bool) and right_is_other:
        raise ValueError("a boolean literal cannot be compared with another type")
    if left.role is Role.PROPERTY and isinstance(right.constant, str) and not convert:
        return _text_equality(left, right.constant)
    first, second = left.evaluate, right.evaluate

    def equal(lookup: Lookup) -> Value:
        a, b = first(lookup), second(lookup)
        if a is None:
            return True if b is None else None
        return b is not None and values.compare("=", a, b, convert)

    return _part(Role.CONDITION, equal, left, right)


def _text_equality(left: Part, text: str) -> Part:
    """Return `property = 'text'`, by far the most common comparison."""
    name = left.name

    def equal(lookup: Lookup) -> Value:
        value = lookup(name)
        return None if value is None else value == text

    return _part(Role.CONDITION, equal, left)


def ordering(symbol: str, left: Part, right: Part, convert: bool) -> Part:
    """Return `left < right` and its kin; unknown when a side is."""
    for part in (left, right):
        literal_number = part.role is Role.CONSTANT and values.is_number(part.constant)
        if part.role is Role.CONDITION or (part.role is Role.CONSTANT and not literal_number):
            raise ValueError(f"{symbol} compares numbers only")
    first, second = left.evaluate, right.evaluate

    def ordered(lookup: Lookup) -> Value:
        a, b = first(lookup), second(lookup)
        return None if a is None or b is None else values.compare(symbol, a, b, convert)

    return _part(Role.CONDITION, ordered, left, right)


def between(value: Part, low: Part, high: Part, convert: bool) -> Part:
    """Return `value BETWEEN low AND high`, both ends included."""
    return conjunction((ordering(">=", value, low, convert), ordering("<=", value, high, convert)))


def not_between(value: Part, low: Part, high: Part, convert: bool) -> Part:
    """Return `value NOT BETWEEN low AND high`, which is false for values without an order."""
    return disjunction((ordering("<", value, low, convert), ordering(">", value, high, convert)))


def is_null(part: Part) -> Part:
    """Return `part IS NULL`, which is never unknown."""
    evaluate = part.evaluate
    return _part(Role.CONDITION, lambda lookup: evaluate(lookup) is None, part)


def membership(part: Part, texts: frozenset[str], negated: bool) -> Part:
    """Return `property IN (…)`; unknown for null and for anything that is no string."""
    if part.role is not Role.PROPERTY:
        raise ValueError(f"IN needs an identifier to its left, found {part.role.value}")
    name = part.name

    def member(lookup: Lookup) -> Value:
        value = lookup(name)
        return (value in texts) is not negated if isinstance(value, str) else None

    return _part(Role.CONDITION, member, part)


def likeness(part: Part, pattern: str, escape: str | None) -> Part:
    """Return `part LIKE pattern`; false for anything that is no string, unknown for null."""
    if escape is not None and len(escape) != 1:
        raise ValueError(f"ESCAPE needs one character, found {len(escape)}")
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise ValueError(f"a LIKE pattern has more than {PATTERN_CHARACTERS_MAX} characters")
    evaluate, like = part.evaluate, compile_like(pattern, escape)

    def matched(lookup: Lookup) -> Value:
        value = evaluate(lookup)
        if value is None:
            return None
        return isinstance(value, str) and like(value)

    return _part(Role.CONDITION, matched, part)


ARITHMETIC: dict[str, Callable[[Value, Value], Value]] = {
    "+": values.add,
    "-": values.subtract,
    "*": values.multiply,
    "/": values.divide,
    "%": values.remainder,
}


def arithmetic(symbol: str, left: Part, right: Part) -> Part:
    """Return `left + right` and its kin; unknown when a side is."""
    first, second, operation = left.evaluate, right.evaluate, ARITHMETIC[symbol]

    def result(lookup: Lookup) -> Value:
        a, b = first(lookup), second(lookup)
        return None if a is None or b is None else operation(a, b)

    return _part(Role.ARITHMETIC, result, left, right)


def minus(part: Part) -> Part:
    """Return `-part`; unknown for anything that is no number."""
    evaluate = part.evaluate
    if part.role is Role.CONSTANT:
        value = values.negate(part.constant)
        return _part(Role.ARITHMETIC, lambda _lookup: value, part)
    return _part(Role.ARITHMETIC, lambda lookup: values.negate(evaluate(lookup)), part)
