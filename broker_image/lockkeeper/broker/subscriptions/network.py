"""Consumers of bridges: each stands for consumers of another broker."""

from collections.abc import Callable
from typing import Any, NamedTuple

from lockkeeper.broker.message_properties import BROKER_PATH, PATH_SEPARATOR
from lockkeeper.broker.selectors import Lookup, Selector

UNLIMITED = -1


class NetworkRoute(NamedTuple):
    """The way from a bridge's consumer to those that it stands for.

    `here` is the id of our broker, `broker` that of the one at the bridge's other end, the last one
    of `path`; `consumers` are the ids of the consumers at its end, by which two ways to the same
    one are told. `message_ttl` is how many brokers a message may leave, UNLIMITED for any number.
    `nearest` tells how many bridges lead to the nearest of those consumers that wants a message,
    None if none does.
    """

    here: str
    broker: str
    path: tuple[str, ...]
    consumers: tuple[Any, ...]
    message_ttl: int
    nearest: Callable[[Lookup], int | None]


def may_pass(route: NetworkRoute, path: tuple[str, ...]) -> bool:
    """Tell whether a message that has left the brokers of *path* may take *route*.

    Each broker counts once: a message that was sent back has left some of them several times.
    """
    if route.broker in path:
        return False
    most = route.message_ttl
    return most == UNLIMITED or len(path) < most or len({*path, route.here}) <= most


def network_selector(route: NetworkRoute, inner: Selector | None) -> Selector:
    """Return the predicate of a bridge's consumer: what may pass, and satisfies *inner*."""

    def evaluate(lookup: Lookup) -> bool:
        text = lookup(BROKER_PATH)
        path = tuple(text.split(PATH_SEPARATOR)) if isinstance(text, str) else ()
        return may_pass(route, path) and (inner is None or inner.matches(lookup))

    most = "any number of" if route.message_ttl == UNLIMITED else str(route.message_ttl)
    text = f"at most {most} brokers passed, {route.broker} not among them"
    if inner is not None:
        text = f"({inner.text}) and {text}"
    return Selector(text, evaluate, frozenset())
