"""What a consumer asks for: by arguments, and by options behind its destination's name."""

import pytest

from lockkeeper.client.core.options import ConnectionOptions
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.core.subscribing import consumer_info
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import ConsumerInfo


def info(name: str, prefetch: int | None = None, selector: str | None = None) -> ConsumerInfo:
    return consumer_info(
        ConnectionOptions(), "me", True, name, selector, prefetch, None, False, False, 0, False
    )


def test_options_of_a_destination_are_told_to_the_broker() -> None:
    found = info("A?consumer.prefetchSize=10&consumer.exclusive=true&consumer.priority=5")
    assert found.destination == queue("A")
    assert (found.prefetch_size, found.exclusive, found.priority) == (10, True, 5)
    assert info("topic://T?consumer.retroactive=true").retroactive


def test_what_a_call_says_itself_wins() -> None:
    found = info("A?consumer.prefetchSize=10&consumer.selector=x", prefetch=3, selector="y")
    assert (found.prefetch_size, found.selector) == (3, "y")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("A?consumer.prefetch=10", "did you mean 'consumer.prefetchSize'"),
        ("A?consumer.exclusive=perhaps", "true or false"),
    ],
)
def test_an_unknown_option_of_a_destination_is_an_error(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        info(name)


def test_the_most_exact_pattern_says_how_redelivery_is() -> None:
    policies = [RedeliveryPolicy(number) for number in range(5)]
    found = RedeliveryPolicyMap(
        policies[0],
        {"A.>": policies[1], "A.*": policies[2], "A.B": policies[3], "topic://A.B": policies[4]},
    )
    assert found.policy_of(queue("A.B")) is policies[3]
    assert found.policy_of(queue("A.C")) is policies[2]
    assert found.policy_of(queue("A.C.D")) is policies[1]
    assert found.policy_of(queue("B")) is policies[0]
    assert found.policy_of(topic("A.B")) is policies[4]


def test_collisions_are_avoided_by_a_share_of_the_delay() -> None:
    policy = RedeliveryPolicy(use_collision_avoidance=True, collision_avoidance_factor=0.5)
    assert [policy.spread(10, chance) for chance in (0.0, 0.5, 0.75)] == [5, 10, 12.5]
    assert RedeliveryPolicy().spread(10, 0.0) == 10
