"""The text of a selector to its tokens (JMS 1.1 section 3.8.1.1).

As in ActiveMQ, `-- …` to the end of a line and `/* … */` are comments, reserved words are
written in any case, and identifiers are case-sensitive. Numbers are Java's literals: decimal,
hexadecimal and octal integers with an optional `L`, and floating point with an exponent.
"""

import re
from enum import Enum
from typing import NamedTuple

from lockkeeper.broker.selectors.errors import InvalidSelectorError

RESERVED_WORDS = frozenset(
    {
        "AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE",
        "NOT", "NULL", "OR", "TRUE", "XPATH", "XQUERY",
    }
)  # fmt: skip
INTEGER_DIGITS_MAX = 40
"""Digits of an integer literal; 64-bit numbers need 20."""

TOKENS_MAX = 5000
"""Tokens of a selector: whoever sends one may not hold up the others."""

_TOKEN = re.compile(
    r"""
    (?P<space>   [\ \t\n\r\f]+ | --[^\n\r]* | /\*.*?\*/ )
  | (?P<float>   (?: [0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?
                   | \.[0-9]+(?:[eE][+-]?[0-9]+)?
                   | [0-9]+[eE][+-]?[0-9]+ ) [fFdD]? )
  | (?P<hex>     0[xX][0-9a-fA-F]+[lL]? )
  | (?P<octal>   0[0-7]*[lL]? )
  | (?P<decimal> [1-9][0-9]*[lL]? )
  | (?P<string>  '(?:[^']|'')*+' )
  | (?P<word>    [^\W\d][\w$]* | \$[\w$]* )
  | (?P<symbol>  <> | <= | >= | [=<>+\-*/%(),] )
    """,
    re.VERBOSE | re.DOTALL,
)


class TokenKind(Enum):
    """Kind of a token; the text of `ITSELF` is its symbol or reserved word."""

    LITERAL = "a literal"
    STRING = "a string"
    IDENTIFIER = "an identifier"
    ITSELF = "a symbol or a reserved word"
    END = "the end of the selector"


class Token(NamedTuple):
    """One token: its kind, its text (reserved words in capitals), its value, where it starts."""

    kind: TokenKind
    text: str
    value: bool | int | float | str | None
    position: int


def tokenize(text: str) -> list[Token]:
    """Return the tokens of *text*, the last of kind END.

    Raises InvalidSelectorError at the first character that begins no token.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidSelectorError(text, position, _complaint(text, position))
        if len(tokens) == TOKENS_MAX:
            raise InvalidSelectorError(text, position, f"more than {TOKENS_MAX} words and signs")
        if match.lastgroup != "space":
            _require_gap(text, match)
            tokens.append(_token(text, match))
        position = match.end()
    tokens.append(Token(TokenKind.END, "", None, len(text)))
    return tokens


def _complaint(text: str, position: int) -> str:
    """Say why no token begins at *position*."""
    if text[position] == "'":
        return "the string that begins here has no closing quote"
    return f"expected a literal, an identifier or an operator, found {text[position]!r}"


def _require_gap(text: str, match: re.Match[str]) -> None:
    """Refuse a number that runs into a word or into further digits, such as `5x` or `08`."""
    after = text[match.end() : match.end() + 1]
    if match.lastgroup in ("float", "hex", "octal", "decimal") and re.match(r"[\w$.]", after):
        raise InvalidSelectorError(
            text, match.start(), f"expected a number, found {match.group() + after!r}"
        )


def _token(text: str, match: re.Match[str]) -> Token:
    """Return the token that *match* found."""
    image, position = match.group(), match.start()
    match match.lastgroup:
        case "word":
            return _word(image, position)
        case "symbol":
            return Token(TokenKind.ITSELF, image, None, position)
        case "string":
            return Token(TokenKind.STRING, image, image[1:-1].replace("''", "'"), position)
        case "float":
            return Token(TokenKind.LITERAL, image, float(image.rstrip("fFdD")), position)
    if len(image) > INTEGER_DIGITS_MAX:
        raise InvalidSelectorError(
            text, position, f"a number has more than {INTEGER_DIGITS_MAX} digits"
        )
    base = {"hex": 16, "octal": 8, "decimal": 10}[match.lastgroup or "decimal"]
    return Token(TokenKind.LITERAL, image, int(image.rstrip("lL"), base), position)


def _word(image: str, position: int) -> Token:
    """Return the token of a word: a literal, a reserved word, or an identifier."""
    upper = image.upper()
    if upper not in RESERVED_WORDS:
        return Token(TokenKind.IDENTIFIER, image, image, position)
    if upper in ("TRUE", "FALSE", "NULL"):
        value = {"TRUE": True, "FALSE": False, "NULL": None}[upper]
        return Token(TokenKind.LITERAL, upper, value, position)
    return Token(TokenKind.ITSELF, upper, None, position)
