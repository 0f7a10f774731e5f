"""Which broker is tried when: order, delays and limits of failover."""

import itertools
import random
import socket
import time
from pathlib import Path

import brokers
import pytest
from client_support import Connect, start_broker

from lockkeeper.client import ConnectionFailedError, RequestTimedOutError, connect
from lockkeeper.client.core.reconnecting import Reconnector
from lockkeeper.client.url import Address, parse_url


def reconnector(options: str) -> Reconnector:
    return Reconnector(
        parse_url(f"failover:(tcp://a:1,tcp://b:2,tcp://c:3)?{options}"), list.reverse, lambda: 0.0
    )


def hosts(addresses: list[Address]) -> str:
    return "".join(address.host for address in addresses)


def test_addresses_are_shuffled_unless_told_otherwise() -> None:
    assert hosts(reconnector("").order()) == "cba"
    assert hosts(reconnector("randomize=false").order()) == "abc"


def test_brokers_with_priority_are_tried_first() -> None:
    assert hosts(reconnector("priorityBackup=true").order()) == "acb"
    two = reconnector("priorityBackup=true&priorityURIs=tcp://c:3,tcp://b:2&randomize=false")
    assert hosts(two.order()) == "bca"
    two.lose(Address("c", 3), lived=100, reason=OSError("gone"))
    assert hosts(two.order()) == "bac", "it may hang, and every link would wait for it"
    assert hosts([*two.better_than(Address("a", 1))]) == "cb"
    assert two.better_than(Address("b", 2)) == ()


def test_the_broker_just_lost_is_tried_last() -> None:
    tried = reconnector("randomize=false")
    tried.lose(Address("a", 1), lived=100, reason=OSError("gone"))
    assert hosts(tried.order()) == "bca"


def test_delays_double_up_to_their_maximum() -> None:
    delays = reconnector("maxReconnectDelay=50").delays(is_first=False)
    assert list(itertools.islice(delays, 6)) == [0, 10, 20, 40, 50, 50]


def test_delays_stay_the_same_without_back_off() -> None:
    delays = reconnector("useExponentialBackOff=false").delays(is_first=False)
    assert list(itertools.islice(delays, 4)) == [0, 10, 10, 10]


def test_no_two_clients_come_back_at_the_same_moment() -> None:
    url = parse_url("failover:(tcp://a:1)?initialReconnectDelay=1000&maxReconnectDelay=4000")
    each = [
        list(itertools.islice(Reconnector(url, random.shuffle, random.random).delays(False), 5))
        for _ in range(100)
    ]
    first, *later = (sorted(delays) for delays in zip(*each, strict=True))
    assert first == [0] * 100, "who lost a broker looks for the next one at once"
    for longest, delays in zip((1000, 2000, 4000, 4000), later, strict=True):
        assert longest / 2 < delays[0] < delays[-1] <= longest
        assert len(set(delays)) > 90


def test_a_broker_that_hangs_up_at_once_is_not_called_without_pause() -> None:
    tried = reconnector("")
    for _ in range(3):
        tried.lose(Address("a", 1), lived=0.01, reason=OSError("gone"))
    assert next(iter(tried.delays(is_first=False))) == 40


@pytest.mark.parametrize(
    ("options", "is_first", "rounds"),
    [
        ("maxReconnectAttempts=3", False, 3),
        ("maxReconnectAttempts=3", True, 3),
        ("maxReconnectAttempts=0", False, 0),
        ("maxReconnectAttempts=0", True, 1),
        ("startupMaxReconnectAttempts=2", True, 2),
        ("startupMaxReconnectAttempts=2&maxReconnectAttempts=5", False, 5),
    ],
)
def test_attempts_are_limited(options: str, is_first: bool, rounds: int) -> None:
    assert len(list(reconnector(options).delays(is_first))) == rounds


def test_without_failover_one_address_is_tried_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(ConnectionFailedError, match=f"tcp://127.0.0.1:{port}.*refused"):
            connect(f"tcp://127.0.0.1:{port}")
    tried = Reconnector(parse_url("tcp://a:1"), list.reverse, lambda: 0.0)
    assert not list(tried.delays(is_first=False))


NO_HOSTS = "tcp://a..b:1,tcp://no-such-host.invalid:2,ssl://.c:3"


def test_what_is_no_host_is_passed_over(broker: brokers.RunningBroker, face: Connect) -> None:
    with face(f"failover:({NO_HOSTS},{broker.url})?randomize=false") as connection:
        assert connection.address == broker.url


def test_what_is_no_host_is_passed_over_when_a_broker_is_lost(
    our_mortal_broker: brokers.RunningBroker, tmp_path: Path, face: Connect, queue_name: str
) -> None:
    other = start_broker("lockkeeper", tmp_path / "other")
    try:
        url = f"failover:({our_mortal_broker.url},{NO_HOSTS},{other.url})?randomize=false"
        with face(url) as connection:
            producer = connection.session().producer(queue_name)
            our_mortal_broker.kill()
            producer.send("to the other")
            assert connection.address == other.url
    finally:
        other.stop()


@pytest.mark.parametrize(
    "url", [f"failover:({NO_HOSTS})?startupMaxReconnectAttempts=2", "tcp://a..b:1", "ssl://.c:3"]
)
def test_where_no_host_is_one_the_error_says_so_of_each(face: Connect, url: str) -> None:
    with pytest.raises(ConnectionFailedError) as caught:
        face(url)
    reasons = {
        "tcp://a..b:1": "the host 'a..b' cannot be found: it is no host name",
        "tcp://no-such-host.invalid:2": "the host 'no-such-host.invalid' cannot be found: ",
        "ssl://.c:3": "the host '.c' cannot be found: it is no host name",
    }
    for address, reason in reasons.items():
        assert (f"at {address}: {reason}" in str(caught.value)) is (address in url)


def test_who_looks_for_a_broker_in_vain_learns_why(
    face: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    options = "initialReconnectDelay=1&maxReconnectDelay=1&warnAfterReconnectAttempts=4"
    with pytest.raises(RequestTimedOutError) as caught:
        face(f"failover:(tcp://a..b:1)?{options}", timeout=0.5)
    reason = "no broker could be reached at tcp://a..b:1: the host 'a..b' cannot be found"
    assert f"not done within 0.5 s: {reason}" in str(caught.value)
    assert f"{reason}: it is no host name; 4 attempts were made, and more follow" in caplog.text
    assert "; 5 attempts" not in caplog.text


def test_waiting_for_a_broker_can_be_stopped() -> None:
    began = time.monotonic()
    with pytest.raises(RequestTimedOutError):
        connect("failover:(tcp://127.0.0.1:1)?initialReconnectDelay=5000", timeout=0.2)
    assert time.monotonic() - began < 3
