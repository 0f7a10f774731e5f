"""Bodies by hint: what functions ask for, and what becomes of bodies that are not that."""

import datetime
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import brokers
import msgspec
import pydantic
import pytest
from client_support import dead_letters
from containers import container, serve

from lockkeeper.client import ReceivedMessage, Session, aio, connect
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.listener import ListenerContainer, ListenerSettings, container_of, listener
from lockkeeper.client.listener.converting import build, encoded


@dataclass
class Line:
    article: str
    count: int = 1


@dataclass
class Order:
    number: int
    price: float
    lines: list[Line] = field(default_factory=list)
    note: str | None = None


class PydanticOrder(pydantic.BaseModel):
    number: int
    price: float
    lines: list[dict[str, Any]] = []


class MsgspecOrder(msgspec.Struct):
    number: int
    price: float
    lines: list[Line] = []


GOOD = '{"number": 7, "price": 2, "lines": [{"article": "tea"}]}'
BAD = ("not JSON", "[]", '{"number": "x", "price": 2}', '{"price": 2}')


@pytest.mark.parametrize("kind", [Order, PydanticOrder, MsgspecOrder])
def test_a_body_becomes_what_the_function_asks_for_or_a_dead_letter(
    broker: brokers.RunningBroker, queue_name: str, kind: Any
) -> None:
    came: list[Any] = []
    told: list[str] = []

    def function(order: kind, message: ReceivedMessage) -> None:
        came.append((order, message.body))

    made = container(
        function, broker.url, queue_name,
        error_handler=lambda error, message: told.append(f"{message.body}: {error}"),
    )  # fmt: skip
    with connect(broker.url) as connection:
        producer = connection.session().producer(queue_name)
        producer.send_many([GOOD, *BAD, GOOD.encode()])
        producer.send({"number": 8, "price": 2.5})
        serve(made, lambda: made.counters.received == 7)
        causes = {
            each.body: str(each.properties["dlqDeliveryFailureCause"])
            for each in dead_letters(connection, queue_name)
        }
    orders = [order for order, _ in came]
    assert [type(order) for order in orders] == [kind] * 3
    assert [(order.number, order.price) for order in orders] == [(7, 2.0), (7, 2.0), (8, 2.5)]
    line = orders[0].lines[0]
    assert (line["article"] if isinstance(line, dict) else line.article) == "tea"
    assert causes.keys() == set(BAD)
    assert all("InvalidBodyError: the body is no " in cause for cause in causes.values())
    assert len(told) == 4
    assert (made.counters.invalid, made.counters.processed, made.counters.failed) == (4, 3, 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"number": 1}, "body lacks the field price"),
        ({"number": True, "price": 1.0}, "body.number is a bool, not a int"),
        ({"number": 1, "price": "1"}, "body.price is a str, not a float"),
        ({"number": 1, "price": 1, "lines": {}}, "body.lines is a dict, not a list"),
        ({"number": 1, "price": 1, "lines": [{}]}, r"body.lines\[0\] lacks the field article"),
        ({"number": 1, "price": 1, "x": 2}, "body has the unknown field x"),
        ({"number": 1, "price": 1, "note": 2}, "body.note is a int, not a str; body.note"),
        (5, "body is a int, not a mapping"),
    ],
)
def test_a_dataclass_names_the_field_that_is_wrong(value: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        build(Order, value, "body")


def test_results_are_encoded_as_json() -> None:
    values: dict[str, Any] = {"number": 1, "price": 2.0, "lines": []}
    for result in (PydanticOrder(**values), MsgspecOrder(**values)):
        assert json.loads(str(encoded(result))) == values
    assert json.loads(str(encoded(Order(1, 2.0)))) == {**values, "note": None}
    assert encoded("text") == "text"


def of_a_session(body: str, session: aio.Session) -> None: ...


async def of_another(body: str, session: Session) -> None: ...


def of_two_bodies(one: str, other: bytes) -> None: ...


def of_nothing() -> None: ...


def of_many(*messages: ReceivedMessage) -> None: ...


def of_a_set(body: set[str]) -> None: ...


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (of_a_session, "a function takes a lockkeeper.client.blocking.session.Session"),
        (of_another, "a coroutine function takes a lockkeeper.client.aio.session.Session"),
        (of_two_bodies, "takes a message, or one body"),
        (of_nothing, "takes a message, or one body"),
        (of_many, "names its parameters"),
        (of_a_set, "no message becomes a set"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused_when_it_is_made(
    function: Any, text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        ListenerContainer(function, ListenerSettings("ORDERS"))
    with pytest.raises(TypeError, match=text):
        listener("ORDERS")(function)


def test_a_decorated_function_is_still_that_function() -> None:
    @listener("orders.>", concurrency="1-4")
    def double(text: str) -> str:
        return 2 * text

    assert double("a") == "aa"
    made = container_of(double)
    assert (made.name, made.settings.concurrency) == ("double", (1, 4))
    with pytest.raises(TypeError, match=r"is no listener: decorate it with @listener"):
        container_of(of_a_session)


@pytest.mark.parametrize(
    ("hint", "body", "wanted"),
    [
        (str, b"tea", "tea"),
        (bytes, "tea", b"tea"),
        (dict, '{"a": 1}', {"a": 1}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (list, ["a", 1], ["a", 1]),
        (list[int], "[1, 2]", [1, 2]),
        (Any, {"a": "b"}, {"a": "b"}),
    ],
)
def test_plain_bodies(
    broker: brokers.RunningBroker, queue_name: str, hint: Any, body: Any, wanted: Any
) -> None:
    came: list[Any] = []

    async def function(body: hint) -> None:
        came.append(body)

    with connect(broker.url) as connection:
        connection.session().producer(queue_name).send(body)
    made = container(function, broker.url, queue_name)
    serve(made, lambda: made.counters.received == 1)
    assert (came, made.counters.invalid) == ([wanted], 0)


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Delivery:
    at: datetime.datetime | None = None


@dataclass
class Painted:
    colours: list[Colour]


@dataclass
class Shipped:
    deliveries: dict[str, list[Delivery]]


@dataclass
class Anything:
    known: Mapping[str, Any]
    parts: "list[Anything]"
    kind: Literal["a", "b"] = "a"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Delivery, r"Delivery\.at: no message has a datetime"),
        (Painted, r"Painted\.colours: no message has a Colour"),
        (Shipped, r"Delivery\.at: no message has a datetime"),
    ],
)
def test_a_field_that_no_message_can_fill_is_told_before_any_comes(kind: Any, text: str) -> None:
    """Each message would be a dead letter."""

    def function(body: kind) -> None: ...

    with pytest.raises(TypeError, match=text):
        listener("ORDERS")(function)


def test_fields_of_any_type_that_messages_have_are_fine() -> None:
    def function(body: Anything) -> None: ...

    listener("ORDERS")(function)
    found = build(Anything, {"known": {"a": 1}, "parts": []}, "body")
    assert found == Anything({"a": 1}, [])


@pytest.mark.parametrize("mode", [Acknowledge.AUTO, Acknowledge.DUPS_OK, Acknowledge.CLIENT])
def test_a_container_acknowledges_what_is_done_not_what_is_received(mode: Acknowledge) -> None:
    with pytest.raises(ValueError, match=rf"acknowledge={mode.name}: .* TRANSACTED or INDIVIDUAL"):
        ListenerSettings("ORDERS", acknowledge=mode)
