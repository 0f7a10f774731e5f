"""How often and how soon a message comes again."""

from lockkeeper.client import RedeliveryPolicy


def test_six_redeliveries_are_allowed_as_in_activemq() -> None:
    policy = RedeliveryPolicy()
    assert not policy.is_exceeded(6)
    assert policy.is_exceeded(7)


def test_without_a_maximum_nothing_is_too_often() -> None:
    assert not RedeliveryPolicy(maximum_redeliveries=-1).is_exceeded(1_000_000)


def test_the_first_delay_is_its_own() -> None:
    policy = RedeliveryPolicy(initial_redelivery_delay=0.5, redelivery_delay=2.0)
    assert policy.delay(1, 0.0) == 0.5
    assert policy.delay(2, 0.5) == 2.0
    assert policy.delay(3, 2.0) == 2.0


def test_delays_grow_with_back_off_up_to_their_maximum() -> None:
    policy = RedeliveryPolicy(
        use_exponential_back_off=True, back_off_multiplier=3.0, maximum_redelivery_delay=5.0
    )
    first = policy.delay(1, 0.0)
    second = policy.delay(2, first)
    third = policy.delay(3, second)
    assert (first, second, third) == (1.0, 3.0, 5.0)


def test_back_off_begins_after_an_immediate_first_redelivery() -> None:
    policy = RedeliveryPolicy(
        initial_redelivery_delay=0, redelivery_delay=0.2, use_exponential_back_off=True
    )
    assert policy.delay(2, 0.0) == 0.2
