"""Tokens to compiled parts, by operator precedence (JMS 1.1 section 3.8.1.1).

From loose to tight: OR; AND; NOT; = <> IS; < <= > >= BETWEEN IN LIKE; + -; * / %; unary + -.
Within a level from left to right. Checked against ActiveMQ 5.17.6, with these differences: NOT
stands below comparisons as JMS says (`NOT a IS NULL` means `a IS NOT NULL`, where ActiveMQ binds
NOT to `a` alone and refuses or never matches most of such selectors), integers wider than 64 bits
compare by their value, and XPATH and XQUERY, which need the body, are refused.
"""

from collections.abc import Callable
from enum import IntEnum

from lockkeeper.broker.selectors import expressions
from lockkeeper.broker.selectors.errors import InvalidSelectorError
from lockkeeper.broker.selectors.expressions import Part
from lockkeeper.broker.selectors.lexer import Token, TokenKind, tokenize
from lockkeeper.broker.selectors.like import searches

NESTING_MAX = 200
"""How deep operands may nest; a parenthesis, a sign and the right side of an operator count."""

LIKES_MAX = 200
"""How many LIKE there may be: each one is compiled."""

SEARCHES_MAX = 20
"""How many of them may look for letters and `_` between two `%`, which takes longest by far."""


class Level(IntEnum):
    """The levels of precedence, from loose to tight."""

    OR = 1
    AND = 2
    NOT = 3
    EQUALITY = 4
    COMPARISON = 5
    ADDITION = 6
    MULTIPLICATION = 7
    SIGN = 8


_LEVELS = {
    "OR": Level.OR, "AND": Level.AND,
    "=": Level.EQUALITY, "<>": Level.EQUALITY, "IS": Level.EQUALITY,
    "<": Level.COMPARISON, "<=": Level.COMPARISON, ">": Level.COMPARISON, ">=": Level.COMPARISON,
    "LIKE": Level.COMPARISON, "IN": Level.COMPARISON, "BETWEEN": Level.COMPARISON,
    "NOT": Level.COMPARISON,  # after an operand only NOT LIKE, NOT IN and NOT BETWEEN may follow
    "+": Level.ADDITION, "-": Level.ADDITION,
    "*": Level.MULTIPLICATION, "/": Level.MULTIPLICATION, "%": Level.MULTIPLICATION,
}  # fmt: skip
OPERAND = "a literal, an identifier, NOT, a sign or a parenthesis"


class Parser:
    """Reads one selector; `parse` is called once."""

    def __init__(self, text: str, convert: bool) -> None:
        self._text = text
        self._convert = convert
        self._tokens = tokenize(text)
        self._index = 0
        self._nesting = 0
        self._likes = self._searches = 0
        self.identifiers: set[str] = set()

    def parse(self) -> Part:
        """Return the whole text as one condition; raises InvalidSelectorError."""
        start = self._tokens[0]
        part = self._expression(Level.OR)
        if self._next.kind is not TokenKind.END:
            raise self._unexpected("an operator or the end of the selector")
        return self._build(start, lambda: expressions.condition(part))

    @property
    def _next(self) -> Token:
        """The token not yet read."""
        return self._tokens[self._index]

    def _advance(self) -> Token:
        """Read one token; the last one, END, is never read."""
        token = self._next
        self._index += 1
        return token

    def _accept(self, text: str) -> bool:
        """Read the next token if it is the symbol or reserved word *text*."""
        token = self._next
        if token.kind is not TokenKind.ITSELF or token.text != text:
            return False
        self._index += 1
        return True

    def _expect(self, text: str) -> None:
        """Read the symbol or reserved word *text*."""
        if not self._accept(text):
            raise self._unexpected(text)

    def _expect_string(self, after: str) -> str:
        """Read a string literal."""
        if self._next.kind is not TokenKind.STRING:
            raise self._unexpected(f"a string after {after}")
        return str(self._advance().value)

    def _unexpected(self, expected: str) -> InvalidSelectorError:
        """Return the error that says what was *expected* in place of the next token."""
        token = self._next
        found = token.kind.value if token.kind is TokenKind.END else repr(token.text)
        problem = f"expected {expected}, found {found}"
        return InvalidSelectorError(self._text, token.position, problem)

    def _build(self, at: Token, builder: Callable[[], Part]) -> Part:
        """Return what *builder* makes, its complaint placed at the token *at*."""
        try:
            return builder()
        except ValueError as error:
            raise InvalidSelectorError(self._text, at.position, str(error)) from None

    def _expression(self, level: Level) -> Part:
        """Read an operand and every operator after it that binds at *level* or tighter."""
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            raise InvalidSelectorError(
                self._text, self._next.position, f"nested more than {NESTING_MAX} deep"
            )
        left = self._operand(level)
        while self._next.kind is TokenKind.ITSELF:
            binding = _LEVELS.get(self._next.text)
            if binding is None or binding < level:
                break
            left = self._operation(left, binding)
        self._nesting -= 1
        return left

    def _operand(self, level: Level) -> Part:
        """Read a literal, an identifier, a parenthesis, or one of them with a prefix."""
        token = self._next
        if token.kind in (TokenKind.LITERAL, TokenKind.STRING):
            return expressions.constant(self._advance().value)
        if token.kind is TokenKind.IDENTIFIER:
            self.identifiers.add(self._advance().text)
            return expressions.named(token.text)
        if self._accept("("):
            part = self._expression(Level.OR)
            self._expect(")")
            return part
        if self._accept("NOT"):
            inner = self._expression(Level.NOT if level <= Level.NOT else Level.SIGN)
            return self._build(token, lambda: expressions.negation(inner))
        if self._accept("-"):
            inner = self._expression(Level.SIGN)
            return self._build(token, lambda: expressions.minus(inner))
        if self._accept("+"):
            return self._expression(Level.SIGN)
        if token.text in ("XPATH", "XQUERY"):
            raise self._unexpected(f"{OPERAND} ({token.text} selectors are not supported)")
        raise self._unexpected(OPERAND)

    def _operation(self, left: Part, level: Level) -> Part:
        """Read an operator of *level* and what stands to its right."""
        at = self._advance()
        match level:
            case Level.OR:
                parts = self._chain(left, "OR", Level.AND)
                return self._build(at, lambda: expressions.disjunction(parts))
            case Level.AND:
                parts = self._chain(left, "AND", Level.NOT)
                return self._build(at, lambda: expressions.conjunction(parts))
            case Level.EQUALITY:
                return self._equality(left, at)
            case Level.COMPARISON:
                return self._comparison(left, at)
        right = self._expression(Level(level + 1))
        return self._build(at, lambda: expressions.arithmetic(at.text, left, right))

    def _chain(self, first: Part, word: str, level: Level) -> list[Part]:
        """Read the rest of `a OR b OR …` flat, so that long ones do not nest."""
        parts = [first, self._expression(level)]
        while self._accept(word):
            parts.append(self._expression(level))
        return parts

    def _equality(self, left: Part, at: Token) -> Part:
        """Read the right side of `=` or `<>`, or `[NOT] NULL` after IS."""
        if at.text == "IS":
            negated = self._accept("NOT")
            if self._next.text != "NULL" or self._next.kind is not TokenKind.LITERAL:
                raise self._unexpected("NULL" if negated else "NULL or NOT NULL")
            self._advance()
            return self._maybe_not(negated, at, lambda: expressions.is_null(left))
        right = self._expression(Level.COMPARISON)
        return self._maybe_not(
            at.text == "<>", at, lambda: expressions.equality(left, right, self._convert)
        )

    def _comparison(self, left: Part, at: Token) -> Part:
        """Read the right side of an ordering, of LIKE, IN or BETWEEN."""
        if at.text in ("<", "<=", ">", ">="):
            right = self._expression(Level.ADDITION)
            return self._build(
                at, lambda: expressions.ordering(at.text, left, right, self._convert)
            )
        negated = at.text == "NOT"
        word = self._advance() if negated else at
        match word.text if word.kind is TokenKind.ITSELF else "":
            case "LIKE":
                return self._like(left, at, negated)
            case "IN":
                return self._in(left, at, negated)
            case "BETWEEN":
                return self._between(left, at, negated)
        self._index -= 1
        raise self._unexpected("LIKE, IN or BETWEEN after NOT")

    def _like(self, left: Part, at: Token, negated: bool) -> Part:
        """Read the pattern of LIKE and its escape character."""
        self._likes += 1
        if self._likes > LIKES_MAX:
            raise InvalidSelectorError(self._text, at.position, f"more than {LIKES_MAX} LIKE")
        pattern = self._expect_string("LIKE")
        escape = self._expect_string("ESCAPE") if self._accept("ESCAPE") else None
        self._searches += searches(pattern, escape)
        if self._searches > SEARCHES_MAX:
            problem = f"more than {SEARCHES_MAX} LIKE with _ and letters between two %"
            raise InvalidSelectorError(self._text, at.position, problem)
        return self._maybe_not(negated, at, lambda: expressions.likeness(left, pattern, escape))

    def _in(self, left: Part, at: Token, negated: bool) -> Part:
        """Read the strings that IN lists."""
        self._expect("(")
        texts = {self._expect_string("(")}
        while self._accept(","):
            texts.add(self._expect_string(","))
        self._expect(")")
        return self._build(at, lambda: expressions.membership(left, frozenset(texts), negated))

    def _between(self, left: Part, at: Token, negated: bool) -> Part:
        """Read the two ends of BETWEEN."""
        low = self._expression(Level.ADDITION)
        self._expect("AND")
        high = self._expression(Level.ADDITION)
        builder = expressions.not_between if negated else expressions.between
        return self._build(at, lambda: builder(left, low, high, self._convert))

    def _maybe_not(self, negated: bool, at: Token, builder: Callable[[], Part]) -> Part:
        """Return what *builder* makes, inverted when *negated*."""
        part = self._build(at, builder)
        return self._build(at, lambda: expressions.negation(part)) if negated else part
