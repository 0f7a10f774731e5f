"""Names that RocketMQ's clients agree on: properties, topics, groups."""

from typing import Final

TAGS, KEYS, UNIQUE_KEY = "TAGS", "KEYS", "UNIQ_KEY"
DELAY_LEVEL, DELIVER_AT = "DELAY", "TIMER_DELIVER_MS"
IS_HALF, PRODUCER_GROUP = "TRAN_MSG", "PGROUP"
ORIGINAL_STREAM, ORIGINAL_ID = "RETRY_TOPIC", "ORIGIN_MESSAGE_ID"
RECONSUMED, RECONSUMES_MAX = "RECONSUME_TIME", "MAX_RECONSUME_TIMES"

OWN: Final = frozenset(
    (
        TAGS, KEYS, UNIQUE_KEY, DELAY_LEVEL, DELIVER_AT, IS_HALF, PRODUCER_GROUP, ORIGINAL_STREAM,
        ORIGINAL_ID, RECONSUMED, RECONSUMES_MAX, "WAIT", "REAL_TOPIC", "REAL_QID", "MIN_OFFSET",
        "MAX_OFFSET", "BUYER_ID", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG", "MSG_REGION",
        "TRACE_ON", "CLUSTER", "TIMER_DELAY_MS", "TIMER_DELAY_SEC", "TIMER_ENQUEUE_MS",
        "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES", "TIMER_OUT_MS", "TIMER_DEL_UNIQKEY",
        "__transactionId__", "TRANSACTION_CHECK_TIMES", "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "CONSUME_START_TIME", "EXTEND_UNIQ_INFO", "INSTANCE_ID", "CORRELATION_ID",
        "REPLY_TO_CLIENT", "MSG_TYPE", "TTL", "ARRIVE_TIME", "PUSH_REPLY_TIME", "INNER_NUM",
    )
)  # fmt: skip
"""Properties that are nobody's but the clients' and brokers' own."""

RETRY_PREFIX: Final = "%RETRY%"
DEAD_LETTER_PREFIX: Final = "%DLQ%"
TEMPLATE: Final = "TBW102"
"""The topic whose route is taken for one that is not there yet."""
QUEUES_OF_NEW: Final = 4
"""How many partitions a stream gets that is made for its first message."""
TOOLS_GROUP: Final = "TOOLS_CONSUMER"
"""The group that RocketMQ has for those who look without consuming."""
