"""Writes docs/reference/broker-urls.md from the tables of the client's options: `make urls`."""

from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, NamedTuple

from lockkeeper.client import url_options
from lockkeeper.client.core.options import (
    BlobTransferPolicy,
    ConnectionOptions,
    PrefetchPolicy,
    Timeouts,
)
from lockkeeper.client.core.redelivery import RedeliveryPolicy
from lockkeeper.client.tls import TlsOptions
from lockkeeper.client.url import CLIENT_ID, PASSWORD, USER
from lockkeeper.client.url_options import FailoverOptions, Table, TcpOptions

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "broker-urls.md"

INTRODUCTION = """\
# Broker URLs

Written by `make urls` from the tables of the [Python client](../client.md). Do not edit.

| URL | meaning |
|---|---|
| `tcp://host:port?option=value&option=value` | one broker, on port 61616 unless told otherwise |
| `ssl://host:port?…` | the same, encrypted, on port 61617 |
| `failover:(uri,uri)?…` | the first of several that answers, and the next one when it is lost |

Options have the names and defaults of ActiveMQ's Java client. Times are in ms, sizes in bytes; -1
is no limit. What is not on this page is an error that names the nearest option.
"""


class Section(NamedTuple):
    """One table of the page: its options, where their defaults are, and what they mean."""

    title: str
    text: str
    table: Table
    defaults: type[Any]
    meanings: dict[str, str]


CONNECTION = {
    USER: "the user; `user=` of `connect` wins",
    PASSWORD: "the user's password; `password=` of `connect` wins",
    CLIENT_ID: "the client id, without which there are no durable subscriptions",
}
SECTIONS = (
    Section(
        "Addresses",
        "Behind an address, or with `nested.` before it behind `failover:(…)`: then it holds for "
        "each address in it.",
        url_options.TCP_OPTIONS,
        TcpOptions,
        {
            "connectionTimeout": "time for a broker to accept and to answer; 0: no limit",
            "tcpNoDelay": "send small packets at once",
            "keepAlive": "let the system look after connections that are idle",
            "wireFormat.maxInactivityDuration": "silence after which a peer is lost, the lower one "
            "of both sides; 0: none",
            "wireFormat.maxInactivityDurationInitalDelay": "time before silence counts; spelt as "
            "in ActiveMQ",
            "wireFormat.maxFrameSize": "size of a frame at most",
        },
    ),
    Section(
        "Encrypted addresses",
        "Java has key stores instead of files. More in [security](../security.md).",
        url_options.TLS_OPTIONS,
        TlsOptions,
        {
            "socket.verifyHostName": "hold the broker's certificate against its host name",
            "ssl.caFile": "authorities to trust, PEM; without it those of the system",
            "ssl.certificateFile": "certificate to show to the broker, PEM",
            "ssl.keyFile": "its key, PEM, if that is a file of its own",
        },
    ),
    Section(
        "Failover",
        "Behind `failover:(…)`. A round tries every address. Hosts that cannot be found are passed "
        "over; the error when no broker was reached has the reason for each address.",
        url_options.FAILOVER_OPTIONS,
        FailoverOptions,
        {
            "initialReconnectDelay": "wait before the second round; the first one begins at once",
            "maxReconnectDelay": "longest wait between two rounds",
            "useExponentialBackOff": "lengthen each wait",
            "reconnectDelayExponent": "by this factor",
            "maxReconnectAttempts": "rounds after the connection was lost",
            "startupMaxReconnectAttempts": "rounds for the first connection; -1: as "
            "`maxReconnectAttempts`",
            "randomize": "try the addresses in random order, else as they are listed",
            "timeout": "time for which calls wait for a broker",
            "updateURIsSupported": "take up addresses that a broker tells of",
            "warnAfterReconnectAttempts": "rounds between two warnings in the log; -1: none",
            "priorityBackup": "prefer some addresses: try them first, and move to one as soon as "
            "it answers",
            "priorityURIs": "those addresses, `uri,uri`; without it the first one that is listed",
        },
    ),
    Section(
        "Limits of calls",
        "For every kind of URL, as all that follows. A `timeout=` of a call holds besides.",
        url_options.TIMEOUT_OPTIONS,
        Timeouts,
        {
            "jms.sendTimeout": "time for the answer to a message; 0: no limit, as flow control may "
            "take long",
            "jms.requestTimeout": "time for the answer to everything else; 0: no limit",
            "jms.closeTimeout": "time for closing a connection",
        },
    ),
    Section(
        "Prefetch",
        "Messages that a broker sends ahead. With 0 each `receive` asks for one. "
        "`jms.prefetchPolicy.all` sets those that are not named themselves.",
        url_options.PREFETCH_OPTIONS,
        PrefetchPolicy,
        {
            "jms.prefetchPolicy.queuePrefetch": "to a consumer of a queue",
            "jms.prefetchPolicy.topicPrefetch": "to a consumer of a topic",
            "jms.prefetchPolicy.durableTopicPrefetch": "to a durable subscriber",
            "jms.prefetchPolicy.queueBrowserPrefetch": "to a browser of a queue",
            "jms.prefetchPolicy.optimizeDurableTopicPrefetch": "to a durable subscriber with "
            "`optimizeAcknowledge`",
        },
    ),
    Section(
        "Redelivery",
        "What becomes of messages that were rolled back, or whose listener failed; `redelivery=` "
        "of `connect` wins.",
        url_options.REDELIVERY_OPTIONS,
        RedeliveryPolicy,
        {
            "jms.redeliveryPolicy.maximumRedeliveries": "a message that would come again more "
            "often is a dead letter",
            "jms.redeliveryPolicy.initialRedeliveryDelay": "wait before it comes again at first",
            "jms.redeliveryPolicy.redeliveryDelay": "wait before it comes once more",
            "jms.redeliveryPolicy.useExponentialBackOff": "lengthen each wait",
            "jms.redeliveryPolicy.backOffMultiplier": "by this factor",
            "jms.redeliveryPolicy.maximumRedeliveryDelay": "longest wait",
            "jms.redeliveryPolicy.useCollisionAvoidance": "make each wait longer or shorter at "
            "random",
            "jms.redeliveryPolicy.collisionAvoidancePercent": "by so many percent at most",
        },
    ),
    Section(
        "Sending and receiving",
        "",
        url_options.CONNECTION_OPTIONS,
        ConnectionOptions,
        {
            "jms.optimizeAcknowledge": "in AUTO mode acknowledge many messages at once, at 65 % of "
            "the window",
            "jms.optimizeAcknowledgeTimeOut": "or after this time",
            "jms.checkForDuplicates": "after a failover, hand out nothing once more that was "
            "acknowledged",
            "jms.messagePrioritySupported": "hand out what has arrived by its priority",
            "jms.alwaysSyncSend": "wait for the answer to each message",
            "jms.useAsyncSend": "wait for none, not even for persistent ones",
            "jms.useCompression": "compress bodies",
            "jms.exclusiveConsumer": "have all consumers of queues be exclusive",
            "jms.dispatchAsync": "let the broker dispatch in a thread of its own, if it has any",
            "jms.producerWindowSize": "bytes that a producer sends ahead of the broker's taking "
            "them; 0: no limit",
        },
    ),
    Section(
        "Blobs",
        "Where `session.upload` puts files: with HTTP, or into a directory (`file:///…`). The "
        "first of these that is set is taken.",
        url_options.BLOB_OPTIONS,
        BlobTransferPolicy,
        {
            "jms.blobTransferPolicy.uploadUrl": "whatever the broker says",
            "jms.blobTransferPolicy.brokerUploadUrl": "until the broker tells its own; ActiveMQ "
            "and Lockkeeper tell none",
            "jms.blobTransferPolicy.defaultUploadUrl": "where nothing else is said",
        },
    ),
)
MISSING_OPTIONS = {
    "`wireFormat.cacheEnabled`, `cacheSize`, `tightEncodingEnabled`, `sizePrefixDisabled`, "
    "`version`": "The client always speaks version 12 or the broker's, loose and without cache: "
    "what is on the wire is what a journal holds.",
    "`soTimeout`, `soLinger`, `ioBufferSize`, `socketBufferSize`, `trafficClass`, "
    "`soWriteTimeout`": "An event loop reads and writes, so none of these has a meaning.",
    "`backup`, `backupPoolSize`": "The next broker is dialled when it is needed.",
    "`trackMessages`, `maxCacheSize`, `trackTransactionProducers`": "What has no answer yet is "
    "always repeated, and transactions are recorded up to 16 MiB.",
    "`updateURIsURL`, `rebalanceUpdateURIs`": "Addresses come from the URL and from brokers.",
    "`jms.watchTopicAdvisories`": "The broker refuses a message to a temporary destination that "
    "is gone.",
    "`jms.useDedicatedTaskRunner`, `alwaysSessionAsync`, `maxThreadPoolSize`, "
    "`optimizedMessageDispatch`": "The event loop takes what comes; there is no thread a session.",
    "`jms.sendAcksAsync`, `copyMessageOnSend`, `objectMessageSerializationDefered`, "
    "`trustedPackages`": "An acknowledgement never waits, and a message is encoded at once.",
    "`jms.blobTransferPolicy.bufferSize`": "A blob is read in pieces as large as is asked for.",
    "`jms.nonBlockingRedelivery`, `jms.consumerFailoverRedeliveryWaitPeriod`": "A message that "
    "comes again keeps its place before the others.",
}


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for section in SECTIONS:
        assert section.meanings.keys() == section.table.keys(), section.title
        if section.defaults is Timeouts:
            connection = [(f"`{name}`", "", meaning) for name, meaning in CONNECTION.items()]
            parts.append(_table("Who connects", "", connection))
        parts.append(_table(section.title, section.text, _rows(section)))
    missing = "\n".join(f"| {names} | {reason} |" for names, reason in MISSING_OPTIONS.items())
    parts.append(f"\n## Not here\n\n| of ActiveMQ's | why |\n|---|---|\n{missing}\n")
    return "".join(parts)


def _table(title: str, text: str, rows: list[tuple[str, str, str]]) -> str:
    head = f"\n## {title}\n\n" + (f"{text}\n\n" if text else "")
    lines = "".join(f"| {name} | {default} | {meaning} |\n" for name, default, meaning in rows)
    return f"{head}| option | default | meaning |\n|---|---|---|\n{lines}"


def _rows(section: Section) -> list[tuple[str, str, str]]:
    defaults = {field.name: field for field in fields(section.defaults)}
    return [
        (f"`{name}`", _shown(defaults[field], parse), section.meanings[name])
        for name, (field, parse) in section.table.items()
    ]


def _shown(field: "Field[Any]", parse: Any) -> str:
    """Return a default as it would be written in a URL, which is what *parse* reads."""
    default = field.default
    assert default is not MISSING
    if default in (None, ()):
        wanted = [text for text in ("-1", "0") if _reads(parse, text) is None]
        return f"`{wanted[0]}`" if wanted else ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, str):
        return f"`{default}`"
    for text in (f"{default}", f"{default:g}", f"{default * 1000:.0f}", f"{default * 100:.0f}"):
        if _reads(parse, text) == default:
            return f"`{text}`"
    raise AssertionError(f"no text gives {default} of {field.name}")


def _reads(parse: Any, text: str) -> Any:
    try:
        return parse(text)
    except ValueError:
        return ...


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
