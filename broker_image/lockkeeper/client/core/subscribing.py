"""Subscribing: what a consumer asks for, by arguments and by options of its destination.

Options stand behind the name, as in `ORDERS?consumer.prefetchSize=10&consumer.exclusive=true`;
what a call says itself wins.
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl

from lockkeeper.client.core.options import ConnectionOptions
from lockkeeper.client.errors import IllegalStateError
from lockkeeper.message.destination import Destination, parse_destination
from lockkeeper.message.openwire import ConsumerInfo

PREFIX = "consumer."


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


_OPTIONS: dict[str, tuple[str, Callable[[str], object]]] = {
    "consumer.prefetchSize": ("prefetch_size", int),
    "consumer.exclusive": ("exclusive", _flag),
    "consumer.priority": ("priority", int),
    "consumer.retroactive": ("retroactive", _flag),
    "consumer.noLocal": ("no_local", _flag),
    "consumer.selector": ("selector", str),
    "consumer.maximumPendingMessageLimit": ("maximum_pending_message_limit", int),
}


def destination_with_options(name: str | Destination) -> tuple[Destination, dict[str, Any]]:
    """Return a destination, and what its options set in a ConsumerInfo. Raises ValueError."""
    if isinstance(name, Destination):
        return name, {}
    path, separator, query = name.partition("?")
    if not separator or not query.startswith(PREFIX):
        return parse_destination(name), {}
    found: dict[str, Any] = {}
    for option, value in parse_qsl(query, keep_blank_values=True):
        if option not in _OPTIONS:
            nearest = get_close_matches(option, _OPTIONS, n=1, cutoff=0.3)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise ValueError(f"unknown option {option!r} of {path!r}{hint}")
        field, parse = _OPTIONS[option]
        try:
            found[field] = parse(value)
        except ValueError as error:
            raise ValueError(f"option {option}={value} of {path!r}: {error}") from error
    return parse_destination(path), found


def consumer_info(
    options: ConnectionOptions,
    client_id: str | None,
    is_automatic: bool,
    name: str | Destination,
    selector: str | None,
    prefetch: int | None,
    subscription_name: str | None,
    no_local: bool,
    exclusive: bool,
    priority: int,
    retroactive: bool,
) -> ConsumerInfo:
    """Return what tells a broker of a consumer; *is_automatic* is its session in AUTO mode.

    Raises ValueError for options that are not there, IllegalStateError for a durable subscription
    that cannot be.
    """
    destination, asked = destination_with_options(name)
    if subscription_name is not None and not (destination.is_topic and client_id):
        raise IllegalStateError("a durable subscription needs a topic and a client id")
    is_optimized = options.optimize_acknowledge and is_automatic
    if prefetch is None:
        usual = options.prefetch.of_consumer(
            destination, subscription_name is not None, is_optimized
        )
        prefetch = asked.get("prefetch_size", usual)
    given = {
        "selector": selector,
        "no_local": no_local,
        "exclusive": exclusive or options.exclusive_consumer,
        "priority": priority,
        "retroactive": retroactive,
    }
    asked |= {field: value for field, value in given.items() if value}
    asked["prefetch_size"] = prefetch
    return ConsumerInfo(
        destination=destination,
        subscription_name=subscription_name,
        optimized_acknowledge=is_optimized,
        **asked,
    )


def browser_info(
    options: ConnectionOptions, name: str | Destination, selector: str | None
) -> ConsumerInfo:
    """Return what tells a broker of a browser."""
    destination, _ = destination_with_options(name)
    return ConsumerInfo(
        destination=destination,
        prefetch_size=options.prefetch.queue_browser,
        selector=selector,
        browser=True,
    )
