"""Loads of the bench by their letters, and the brokers that cannot carry one of them."""

SCENARIOS = {
    "a": "persistent sends, each answered, 1 producer (latency: send)",
    "b": "persistent, 16 producers and 16 consumers, one queue",
    "c": "persistent, transactions of 100, 4 producers and 4 consumers",
    "d": "non-persistent, 1 producer and 1 consumer",
    "e": "topic, 1 producer and 10 consumers (counted: deliveries)",
    "f": "a backlog of 50,000 persistent messages is emptied",
    "g": "1,000 persistent messages/s (latency: send to listener)",
    "h": "persistent, 4 producers, 10 consumers with selectors that share nothing",
    "i": "persistent, 1,000 message groups, 4 producers and 4 consumers",
    "j": "persistent, 1 producer, 100 durable subscribers (counted: deliveries)",
    "k": "persistent, bodies of 100 KiB, 4 producers and 4 consumers",
    "l": "persistent, bodies of 5 MiB, 1 producer and 1 consumer",
    "m": "1,000 persistent messages/s over 1,000 connections (latency: send to listener)",
    "n": "topic, 1 producer and 100 consumers (counted: deliveries)",
    "o": "non-persistent requests and replies, 4 at a time (latency: round trip)",
    "p": "a backlog of 1,000,000 persistent messages is emptied",
    "q": "as b, over TLS",
    "r": "as d, over TLS",
    "s": "a mixed day: everything at once at fixed rates (latency: send to listener)",
    "t": "a stream of 4 partitions, each send answered, 1 producer (latency: send)",
    "u": "a stream of 4 partitions, each send answered, 16 producers (latency: send)",
    "v": "a stream of 4 partitions, 4 producers, 10 groups (counted: deliveries)",
    "w": "1,000 messages/s to a stream of 4 partitions, 1 group (latency: send to listener)",
}
USUAL = "abcdefg"
LATENCY_SCENARIOS = "abgmostuw"
"""Where latency says something; elsewhere it is only what is under way by the rate."""
TLS_SCENARIOS = "qr"
MIXED_DAY = "s"
"""Needs delayed delivery, and has a length of its own."""

STREAM_SCENARIOS = "tuvw"
"""Go by RocketMQ's protocol, with its client."""
STREAMING = ("lockkeeper", "rocketmq")
"""How the names of brokers that have streams begin."""

UNFIT = {
    "rabbitmq": {
        "h": "consumers of a queue cannot select: every binding makes a queue of its own",
        "i": "there are no message groups",
        "s": "neither selectors, nor delayed delivery without a plugin that Debian does not have",
    },
}
"""The scenarios that brokers cannot carry, and why."""


def unfit(kind: str, scenario: str) -> str | None:
    """Return why brokers of *kind* cannot carry a scenario, or None."""
    if scenario in STREAM_SCENARIOS and not kind.startswith(STREAMING):
        return "RocketMQ's client cannot talk to it"
    if kind == "rocketmq" and scenario not in STREAM_SCENARIOS:
        return "there are streams alone"
    return UNFIT.get(kind, {}).get(scenario)
