"""Trace contexts: carried as properties, current while a listener is called."""

import brokers
import pytest
from client_support import Connect, take
from containers import container, serve

from lockkeeper.client import ReceivedMessage, connect
from lockkeeper.client.tracing import (
    TraceContext,
    current_trace,
    new_trace,
    trace_of,
    traced,
    tracing,
)

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_context_is_read_as_it_is_written() -> None:
    context = trace_of({"traceparent": PARENT, "tracestate": "a=b"})
    assert context == TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 1, "a=b")
    assert context.traceparent == PARENT
    child = context.child()
    assert (child.trace_id, child.state) == (context.trace_id, "a=b")
    assert child.span_id != context.span_id and len(child.span_id) == 16
    assert trace_of({"traceparent": new_trace().traceparent}) is not None
    # A later version may say more.
    assert trace_of({"traceparent": PARENT.replace("00-", "01-", 1) + "-what"}) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ff" + PARENT[2:],
        PARENT + "-more",
        PARENT.upper(),
        PARENT[:-1],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        7,
    ],
)
def test_a_broken_context_is_none(text: str | int) -> None:
    assert trace_of({"traceparent": text}) is None


def test_nothing_is_added_without_a_context_or_beside_another() -> None:
    assert traced(None) is None
    given = {"traceparent": "mine"}
    with tracing(new_trace()):
        assert traced(given) is given
    assert current_trace() is None


def test_everything_that_is_sent_carries_the_current_context(
    broker: brokers.RunningBroker, open_connection: Connect, queue_name: str
) -> None:
    with connect(broker.url) as connection:
        session = connection.session()
        context = TraceContext("1" * 32, "2" * 16, 0, "a=b")
        with tracing(context):
            producer = session.producer(queue_name)
            producer.send("one", {"own": 1})
            producer.send_many(["two"])
        producer.send("three")
        one, two, three = take(session.consumer(queue_name), 3)
    assert dict(one.properties) == {
        "own": 1,
        "traceparent": context.traceparent,
        "tracestate": "a=b",
    }
    assert two.properties["traceparent"] == context.traceparent
    assert dict(three.properties) == {}


@pytest.mark.parametrize("is_coroutine", [True, False], ids=["coroutine", "function"])
def test_what_a_listener_sends_belongs_to_the_trace_of_its_message(
    broker: brokers.RunningBroker, queue_name: str, is_coroutine: bool
) -> None:
    spans: list[TraceContext | None] = []

    def function(message: ReceivedMessage) -> str:
        spans.append(current_trace())
        return "answer"

    async def coroutine(message: ReceivedMessage) -> str:
        return function(message)

    made = container(
        coroutine if is_coroutine else function, broker.url, queue_name,
        send_to=f"{queue_name}.OUT",
    )  # fmt: skip
    with connect(broker.url) as connection:
        session = connection.session()
        with tracing(trace_of({"traceparent": PARENT})):
            session.producer(queue_name).send("asked")
        session.producer(queue_name).send("without")
        serve(made, lambda: made.counters.processed == 2)
        answers = take(session.consumer(f"{queue_name}.OUT"), 2)
    span, none = spans
    assert none is None
    assert span is not None and span.trace_id in PARENT and span.span_id not in PARENT
    assert answers[0].properties["traceparent"] == span.traceparent
    assert dict(answers[1].properties) == {}
