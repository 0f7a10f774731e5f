"""Values of a selector and what Java's arithmetic and comparisons do with them.

Integers are Java's long (they wrap at 64 bits), floating point is its double. None is SQL's
unknown. What ActiveMQ answers to a mismatch of types is kept: comparing is false, calculating
fails, and a message over which a selector fails does not match it.
"""

import math
import operator
import re
from collections.abc import Callable

Value = bool | int | float | str | None
Lookup = Callable[[str], Value]
Evaluate = Callable[[Lookup], Value]

TEXT_CHARACTERS_MAX = 65_536
"""Length of a string that `+` may make while a message is evaluated."""

COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "=": operator.eq,
    ">": operator.gt,  # type: ignore[dict-item]
    ">=": operator.ge,  # type: ignore[dict-item]
    "<": operator.lt,  # type: ignore[dict-item]
    "<=": operator.le,  # type: ignore[dict-item]
}
_JAVA_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_SIGN_BIT = 1 << 63
_WORD_MASK = (1 << 64) - 1


class MismatchError(TypeError):
    """A calculation got a value that it has no result for, such as a string to divide."""


def is_number(value: Value) -> bool:
    """Tell whether *value* is an integer or a float; a boolean is neither."""
    return type(value) is int or type(value) is float


def wrapped(number: int) -> int:
    """Return *number* as a Java long would hold it."""
    return ((number + _SIGN_BIT) & _WORD_MASK) - _SIGN_BIT


def compare(symbol: str, left: Value, right: Value, convert: bool) -> bool:
    """Compare two values, neither of them None; unlike types are unequal and unordered.

    With *convert* a string is read as the type of the other side first, and is unequal when it
    cannot be (ActiveMQ's `convert_string_expressions:`).
    """
    if convert and type(left) is not type(right):
        left, right = _converted(left, right), _converted(right, left)
    if type(left) is type(right) or (is_number(left) and is_number(right)):
        return COMPARISONS[symbol](_ordered(left), _ordered(right))
    return False


def _ordered(value: Value) -> Value:
    """Return what stands for *value* in an order: NaN counts as infinity, as high as can be."""
    if isinstance(value, float) and math.isnan(value):
        return math.inf
    return value


def _converted(value: Value, other: Value) -> Value:
    """Return the string *value* as the type of *other*, or *value* where that does not apply."""
    if not isinstance(value, str):
        return value
    if isinstance(other, bool):
        return value.lower() == "true"
    if isinstance(other, int) and _JAVA_INTEGER.fullmatch(value):
        return int(value)
    if isinstance(other, float):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def add(left: Value, right: Value) -> Value:
    """Return the sum, or the concatenation when the left side is a string."""
    if isinstance(left, str):
        text = left + java_text(right)
        if len(text) > TEXT_CHARACTERS_MAX:
            raise MismatchError(f"a string of more than {TEXT_CHARACTERS_MAX} characters")
        return text
    return _arithmetic(operator.add, left, right)


def subtract(left: Value, right: Value) -> Value:
    """Return the difference of two numbers."""
    return _arithmetic(operator.sub, left, right)


def multiply(left: Value, right: Value) -> Value:
    """Return the product of two numbers."""
    return _arithmetic(operator.mul, left, right)


def _number(value: Value) -> int | float:
    """Return *value* if it is a number; raises MismatchError otherwise."""
    if isinstance(value, bool | str | None):
        raise MismatchError(f"not a number: {value!r}")
    return value


def _arithmetic(
    operation: Callable[[int | float, int | float], int | float], left: Value, right: Value
) -> Value:
    """Apply *operation* to two numbers."""
    result = operation(_number(left), _number(right))
    return wrapped(result) if isinstance(result, int) else result


def divide(left: Value, right: Value) -> Value:
    """Return the quotient of two numbers, always floating point as in ActiveMQ."""
    dividend, divisor = float(_number(left)), float(_number(right))
    if divisor != 0.0:
        return dividend / divisor
    if dividend == 0.0 or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def remainder(left: Value, right: Value) -> Value:
    """Return the remainder with the sign of the left side, always floating point."""
    dividend, divisor = float(_number(left)), float(_number(right))
    if divisor == 0.0 or math.isinf(dividend):
        return math.nan
    return math.fmod(dividend, divisor)


def negate(value: Value) -> Value:
    """Return the number with its sign changed; anything else is unknown."""
    if isinstance(value, bool | str | None):
        return None
    return wrapped(-value) if isinstance(value, int) else -value


def java_text(value: Value) -> str:
    """Return the text that Java's string concatenation makes of *value*."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    return str(value)


def _float_text(value: float) -> str:
    """Return a double's text in Java's form: `1.0`, `1.0E10`, `Infinity`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0.0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else format(value, "f")
    sign, digits = ("-", repr(-value)) if value < 0 else ("", repr(value))
    mantissa, _, exponent = format(float(digits), ".16e").partition("e")
    shortest = repr(float(digits)).partition("e")[0]
    significant = shortest.replace(".", "").strip("0") or mantissa[0]
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{int(exponent)}"
