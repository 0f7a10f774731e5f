"""Brokers find each other by what they tell a group, and believe nobody more than that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.network.announcements import NEIGHBOURS_MAX, Neighbours, announcement
from lockkeeper_api.network_uris import read_found_address

# As ActiveMQ 5.17 sends it.
OF_ACTIVEMQ = (
    b"default.ActiveMQ-4.alive.%localhost%"
    b"tcp://hub:61616?maximumConnections=1000&wireFormat.maxFrameSize=104857600"
)
INTERVAL = 500


def address_of(text: str) -> str:
    return str(read_found_address(text))


@pytest.fixture
def neighbours() -> Neighbours:
    return Neighbours("default", INTERVAL, address_of)


def test_what_is_told_is_heard_until_it_goes(neighbours: Neighbours) -> None:
    neighbours.hear(OF_ACTIVEMQ, 0)
    neighbours.hear(announcement("default", "ssl://[::1]:61617", is_alive=True), 0)
    assert set(neighbours.found) == {"tcp://hub:61616", "ssl://[::1]:61617"}
    neighbours.hear(announcement("default", "tcp://hub:61616", is_alive=False), 1)
    assert set(neighbours.found) == {"ssl://[::1]:61617"}


def test_who_is_silent_for_ten_intervals_is_gone(neighbours: Neighbours) -> None:
    neighbours.hear(OF_ACTIVEMQ, 0)
    neighbours.hear(announcement("default", "tcp://b:1", is_alive=True), 1)
    neighbours.part_with_silent(10 * INTERVAL)
    assert set(neighbours.found) == {"tcp://hub:61616", "tcp://b:1"}
    neighbours.part_with_silent(10 * INTERVAL + 1)
    assert set(neighbours.found) == {"tcp://b:1"}


@pytest.mark.parametrize(
    "datagram",
    [
        b"other.ActiveMQ-4.alive.%localhost%tcp://hub:61616",
        b"default2.ActiveMQ-4.alive.%localhost%tcp://hub:61616",
        b"default.ActiveMQ-4.alive.%localhost",
        b"default.ActiveMQ-4.alive.",
        b"default.ActiveMQ-4.asleep.%localhost%tcp://hub:61616",
        b"default.ActiveMQ-4.alive.%localhost%udp://hub:61616",
        b"default.ActiveMQ-4.alive.%localhost%tcp://hub",
        b"default.ActiveMQ-4.alive.%localhost%tcp://hub..example:1",
        b"default.ActiveMQ-4.alive.%localhost%tcp://" + b"h" * 64 + b":1",
        b"default.ActiveMQ-4.alive.%localhost%tcp://hub:61616\xff",
        b"default.ActiveMQ-4.alive.%localhost%tcp://" + b"h" * 1000 + b":61616",
        b"",
    ],
)
def test_what_names_no_broker_is_passed_over(neighbours: Neighbours, datagram: bytes) -> None:
    neighbours.hear(datagram, 0)
    assert not neighbours.found


def test_a_flood_of_names_is_bounded_and_does_not_oust_who_is_there(neighbours: Neighbours) -> None:
    neighbours.hear(OF_ACTIVEMQ, 0)
    for port in range(1, 2_000):
        neighbours.hear(announcement("default", f"tcp://flood:{port}", is_alive=True), 1)
    assert len(neighbours.found) == NEIGHBOURS_MAX
    neighbours.hear(OF_ACTIVEMQ, 2)
    assert "tcp://hub:61616" in neighbours.found


@given(rest=st.binary(max_size=100))
def test_no_datagram_fails(rest: bytes) -> None:
    heard = Neighbours("default", INTERVAL, address_of)
    for begins in (b"", b"default.ActiveMQ-4.", b"default.ActiveMQ-4.alive.%localhost%tcp://"):
        heard.hear(begins + rest, 0)
