"""Routing keys fit bindings as AMQP says."""

import pytest

from lockkeeper.integrations.kombu.exchanges import DIRECT, FANOUT, TOPIC, fits


@pytest.mark.parametrize(
    ("binding", "routing_key", "expected"),
    [
        ("#", "", True),
        ("#", "a.b.c", True),
        ("a.#", "a", True),
        ("a.#", "a.b.c", True),
        ("a.#", "ab", False),
        ("#.c", "c", True),
        ("#.c", "a.b.c", True),
        ("#.c", "a.b", False),
        ("a.#.c", "a.c", True),
        ("a.#.c", "a.b.b.c", True),
        ("*", "a", True),
        ("*", "a.b", False),
        ("a.*.c", "a.b.c", True),
        ("a.*.c", "a.c", False),
        ("*.#", "a", True),
        ("a+b", "aab", False),
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
    ],
)
def test_topics(binding: str, routing_key: str, expected: bool) -> None:
    assert fits(TOPIC, binding, routing_key) is expected


def test_direct_and_fanout() -> None:
    assert fits(DIRECT, "a.*", "a.*")
    assert not fits(DIRECT, "a.*", "a.b")
    assert fits(FANOUT, "a", "b")
