"""Exchanges: which bindings a routing key fits, as AMQP 0-9-1 says (section 3.1.3)."""

from functools import lru_cache

DIRECT, TOPIC, FANOUT = "direct", "topic", "fanout"
TYPES = frozenset((DIRECT, TOPIC, FANOUT))
ANY_WORD, ANY_WORDS = "*", "#"


def fits(exchange_type: str, binding_key: str, routing_key: str) -> bool:
    """Tell whether a message with *routing_key* goes where *binding_key* is bound to.

    In a topic exchange `*` is one word and `#` any number of them, none included.
    """
    if exchange_type == FANOUT:
        return True
    if exchange_type == DIRECT:
        return binding_key == routing_key
    return _words_fit(tuple(binding_key.split(".")), tuple(routing_key.split(".")))


@lru_cache(maxsize=4096)
def _words_fit(pattern: tuple[str, ...], words: tuple[str, ...]) -> bool:
    if not pattern:
        return not words
    first, rest = pattern[0], pattern[1:]
    if first == ANY_WORDS:
        return any(_words_fit(rest, words[taken:]) for taken in range(len(words) + 1))
    return bool(words) and first in (ANY_WORD, words[0]) and _words_fit(rest, words[1:])
