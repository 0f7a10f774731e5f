"""What a broker does to every message: timestamps by its own clock, the user's name."""

from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.interceptors.timestamps import TimestampSettings
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message import openwire
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.patching import LONG_MAX
from lockkeeper.message.rewrite import decoded

if TYPE_CHECKING:
    from conftest import Bench


def received(
    make_bench: "type[Bench]", settings: BrokerSettings, **fields: Any
) -> tuple[openwire.Message, int]:
    """Send one message; return it as a consumer gets it, and the broker's time."""
    bench = make_bench(settings=settings)
    client = bench.client()
    consumer = client.consume("Q")
    client.connection.user_name = "ada"
    client.send("Q", "hello", **fields)
    (delivery,) = client.deliveries(consumer)
    return decoded(delivery.message), bench.now


@pytest.mark.parametrize(
    ("settings", "sent", "time_to_live"),
    [
        (TimestampSettings(), 0, 0),
        (TimestampSettings(), 5_000, 5_000),
        (TimestampSettings(ttl_ceiling=1_000), 5_000, 1_000),
        (TimestampSettings(ttl_ceiling=1_000), 0, 0),
        (TimestampSettings(zero_expiration_override=9_000), 0, 9_000),
        (TimestampSettings(zero_expiration_override=9_000, ttl_ceiling=1_000), 0, 1_000),
        (TimestampSettings(zero_expiration_override=9_000), 5_000, 5_000),
    ],
)
def test_times_become_the_brokers_own(
    make_bench: "type[Bench]", settings: TimestampSettings, sent: int, time_to_live: int
) -> None:
    stale = 1_000_000_000_000
    message, now = received(
        make_bench,
        BrokerSettings(timestamps=settings),
        timestamp=stale,
        expiration=stale + sent if sent else 0,
    )
    assert message.timestamp == now
    assert message.expiration == (now + time_to_live if time_to_live else 0)


@pytest.mark.parametrize("sent", [-1, -(2**63), LONG_MAX + 1_000_000_000_000 - 2**64])
@pytest.mark.parametrize(
    ("settings", "time_to_live"),
    [
        (TimestampSettings(), 0),
        (TimestampSettings(future_only=True), 0),
        (TimestampSettings(ttl_ceiling=1_000), 0),
        (TimestampSettings(zero_expiration_override=9_000), 9_000),
    ],
)
def test_a_negative_expiration_is_none(
    make_bench: "type[Bench]", settings: TimestampSettings, time_to_live: int, sent: int
) -> None:
    """Clients add the longest time to live to the time, which is more than their numbers hold."""
    message, now = received(
        make_bench, BrokerSettings(timestamps=settings), timestamp=7, expiration=sent
    )
    assert message.timestamp == now
    assert message.expiration == (now + time_to_live if time_to_live else sent)


def test_nothing_lives_longer_than_numbers_go(make_bench: "type[Bench]") -> None:
    message, _ = received(
        make_bench,
        BrokerSettings(timestamps=TimestampSettings()),
        timestamp=7,
        expiration=LONG_MAX,
    )
    assert message.expiration == LONG_MAX


def test_future_only_never_shortens_a_life(make_bench: "type[Bench]") -> None:
    ahead = 9_000_000_000_000
    message, _ = received(
        make_bench,
        BrokerSettings(timestamps=TimestampSettings(future_only=True)),
        timestamp=ahead,
        expiration=ahead + 10,
    )
    assert (message.timestamp, message.expiration) == (ahead, ahead + 10)


@pytest.mark.parametrize(
    "fields", [{"timestamp": 0}, {"timestamp": 5, "broker_path": (openwire.BrokerId("other"),)}]
)
def test_messages_without_a_timestamp_or_of_another_broker_stay(
    make_bench: "type[Bench]", fields: dict[str, object]
) -> None:
    settings = BrokerSettings(timestamps=TimestampSettings(zero_expiration_override=9_000))
    message, _ = received(make_bench, settings, **fields)
    assert (message.timestamp, message.expiration) == (fields["timestamp"], 0)


def test_the_users_name_comes_from_the_connection(make_bench: "type[Bench]") -> None:
    settings = BrokerSettings(populate_jmsx_user_id=True)
    message, _ = received(make_bench, settings, user_id="root")
    assert message.user_id == "ada"


def test_nothing_is_rewritten_where_nobody_asked(make_bench: "type[Bench]") -> None:
    message, _ = received(make_bench, BrokerSettings(), user_id="root", timestamp=7)
    assert (message.user_id, message.timestamp) == ("root", 7)
    assert message.producer_id == ProducerId("ID:client-1-1:1", 1, 1)
