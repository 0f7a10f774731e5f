"""JMS scenarios that need a broker of a certain configuration, by its name.

A configuration is a pair of files in configurations/: NAME.yaml is a Broker for ours, NAME.xml
the same for ActiveMQ: a `broker` element whose attributes and children replace those of the
stock settings.
"""

CONFIGURED: dict[str, tuple[str, ...]] = {
    "advisories": (
        "advisory-delivered",
        "advisory-consumed",
        "advisory-body",
        "advisory-no-consumer",
        "advisory-discarded",
        "advisory-slow-consumer",
        "advisory-full",
    ),
    "connections": ("connection-stolen-client-id",),
    "redelivery": (
        "broker-redelivery",
        "broker-redelivery-order",
    ),
    "dispatching": (
        "exclusive-for-all",
        "groups-cached",
        "groups-in-buckets",
        "groups-simple",
        "lazy-dispatch",
        "prioritized",
        "prioritized-redelivered",
        "prioritized-transacted",
        "priority-ignored",
        "start-after-consumers",
        "start-after-time",
        "strict-order",
    ),
    "statistics": (
        "statistics-destination",
        "statistics-wildcard",
        "statistics-broker",
        "statistics-subscription",
    ),
    "subscriptions": (
        "recovery-last-image",
        "recovery-fixed-count",
        "recovery-fixed-size",
        "recovery-timed",
        "recovery-always",
        "recovery-selector",
        "recovery-durable",
        "pending-constant",
        "pending-consumer",
        "pending-prefetch-rate",
        "evict-lowest-priority",
        "evict-unique-property",
        "slow-abort",
        "slow-abort-connection",
        "slow-acknowledgement",
        "durable-inactive",
        "durable-abandoned",
    ),
    "time": (
        "scheduled-delay",
        "scheduled-order",
        "scheduled-repeat",
        "scheduled-transaction",
        "scheduled-topic",
        "scheduled-browse",
        "scheduled-browse-times",
        "scheduled-remove",
        "scheduled-cron",
    ),
    "failing": (
        "flow-fails",
        "flow-fails-async",
    ),
    "flow": (
        "flow-acknowledge",
        "flow-async",
        "flow-commit",
        "flow-off",
        "flow-other-destination",
        "flow-spool",
        "flow-sync-send",
        "flow-topic",
        "flow-window",
    ),
    "full": (
        "store-full",
        "store-full-others",
    ),
    "impatient": ("flow-fails-after-timeout",),
    "mirrors": (
        "mirrored-queue",
        "mirrored-queue-virtual-topic",
    ),
    "names": (
        "declared-filtered",
        "declared-queue",
        "declared-topic",
        "declared-transacted",
        "declared-when-not-matched",
        "virtual-topic",
        "virtual-topic-composite",
        "virtual-topic-durable",
        "virtual-topic-keeps-its-name",
        "virtual-topic-not-persistent",
        "virtual-topic-postfix",
        "virtual-topic-selector-aware",
        "virtual-topic-transacted",
        "virtual-topic-wildcard",
    ),
}

SECURED = (
    "security-user",
    "security-refused",
    "security-permissions",
    "security-temporary",
    "security-failover",
)
"""Scenarios for a broker with the configuration `security`, certificates and passwords."""

NETWORK = (
    "network-queue",
    "network-bodies",
    "network-topic",
    "network-durable",
    "network-request-reply",
    "network-transacted",
    "network-rolled-back",
)
"""Scenarios for two brokers that a duplex bridge connects."""
