"""Options of broker URLs, in tables: ActiveMQ's name, our field, and how its value is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from lockkeeper.client.blobs import UPLOAD_SCHEMES
from lockkeeper.client.core.options import (
    BlobTransferPolicy,
    ConnectionOptions,
    PrefetchPolicy,
    Timeouts,
)
from lockkeeper.client.core.redelivery import RedeliveryPolicy
from lockkeeper.client.errors import BrokerUrlError

UNLIMITED = -1
PREFETCH_MAX = 32766


@dataclass(frozen=True, slots=True)
class TcpOptions:
    """Options of one address; times in ms, an inactivity duration of 0 means no check."""

    connection_timeout: int = 30_000
    tcp_no_delay: bool = True
    keep_alive: bool = False
    inactivity_duration: int = 30_000
    inactivity_initial_delay: int = 10_000
    frame_bytes_max: int = 104_857_600


@dataclass(frozen=True, slots=True)
class FailoverOptions:
    """Number and delays of reconnections; delays in ms, -1 means no limit."""

    initial_reconnect_delay: int = 10
    max_reconnect_delay: int = 30_000
    use_exponential_back_off: bool = True
    reconnect_delay_exponent: float = 2.0
    max_reconnect_attempts: int = UNLIMITED
    startup_max_reconnect_attempts: int = UNLIMITED
    randomize: bool = True
    timeout: int = UNLIMITED
    update_uris_supported: bool = True
    warn_after_reconnect_attempts: int = 10
    priority_backup: bool = False
    priority_uris: tuple[str, ...] = ()


_Parser: TypeAlias = Callable[[str], bool | int | float | str | Path | tuple[str, ...] | None]
Table: TypeAlias = Mapping[str, tuple[str, _Parser]]


def read_options(options: Mapping[str, str], known: Table, text: str) -> dict[str, Any]:
    """Return the fields that *options* set. Raises BrokerUrlError for what is not *known*."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            raise unknown_option(name, known, text)
        field, parse = known[name]
        try:
            found[field] = parse(value)
        except ValueError as error:
            raise BrokerUrlError(f"option {name}={value} in {text!r}: {error}") from error
    return found


def unknown_option(name: str, known: Mapping[str, object], text: str) -> BrokerUrlError:
    """Return the error for an option that is not there, which names the nearest that is."""
    lower = {each.lower(): each for each in known}
    nearest = get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    if nearest:
        hint = f"did you mean {lower[nearest[0]]!r}?"
    else:
        hint = f"known are {', '.join(sorted(known))}"
    return BrokerUrlError(f"unknown option {name!r} in {text!r}; {hint}")


def read_jms_options(
    options: Mapping[str, str], text: str
) -> tuple[ConnectionOptions, RedeliveryPolicy]:
    """Return what the options that begin with `jms.` say. Raises BrokerUrlError."""
    known: dict[str, tuple[str, _Parser]] = {
        name: field for table in _JMS_TABLES for name, field in table.items()
    }
    for name in options:
        if name not in known:
            raise unknown_option(name, known, text)

    def fields(table: Table) -> dict[str, Any]:
        return read_options({name: options[name] for name in table if name in options}, table, text)

    everywhere = fields(_PREFETCH_ALL).get("all")
    prefetch = PrefetchPolicy() if everywhere is None else PrefetchPolicy(*[everywhere] * 5)
    settings = ConnectionOptions(
        prefetch=replace(prefetch, **fields(PREFETCH_OPTIONS)),
        timeouts=replace(Timeouts(), **fields(TIMEOUT_OPTIONS)),
        blob_transfer=replace(BlobTransferPolicy(), **fields(BLOB_OPTIONS)),
        **fields(CONNECTION_OPTIONS),
    )
    return settings, replace(RedeliveryPolicy(), **fields(REDELIVERY_OPTIONS))


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return value.lower() == "true"


def _count(value: str) -> int:
    number = int(value)
    if number < 0:
        raise ValueError("must be 0 or more")
    return number


def _limit(value: str) -> int:
    number = int(value)
    if number < UNLIMITED:
        raise ValueError("must be -1 (no limit) or more")
    return number


def _exponent(value: str) -> float:
    number = float(value)
    if not 1 <= number <= 1000:
        raise ValueError("must be 1 to 1000")
    return number


def _prefetch(value: str) -> int:
    number = int(value)
    if not 0 <= number <= PREFETCH_MAX:
        raise ValueError(f"must be 0 to {PREFETCH_MAX}")
    return number


def _seconds(value: str) -> float:
    return _count(value) / 1000


def _seconds_or_never(value: str) -> float | None:
    return _count(value) / 1000 or None


def _seconds_or_unlimited(value: str) -> float | None:
    number = _limit(value)
    return None if number == UNLIMITED else number / 1000


def _share(value: str) -> float:
    number = float(value)
    if not 0 <= number <= 100:
        raise ValueError("must be 0 to 100")
    return number / 100


def _uris(value: str) -> tuple[str, ...]:
    uris = tuple(each.strip() for each in value.split(","))
    if not all(uris):
        raise ValueError("must be uri,uri")
    return uris


def _upload_url(value: str) -> str:
    if value.partition(":")[0].lower() not in UPLOAD_SCHEMES:
        raise ValueError(f"must begin with {', '.join(UPLOAD_SCHEMES)} and a colon")
    if set(value) & set("@?#"):
        raise ValueError("has a user name or a query, which all who receive blobs would be told")
    return value


def _multiplier(value: str) -> float:
    number = float(value)
    if not 0 < number <= 1000:
        raise ValueError("must be more than 0 and 1000 at most")
    return number


TCP_OPTIONS: Table = {
    "connectionTimeout": ("connection_timeout", _count),
    "tcpNoDelay": ("tcp_no_delay", _flag),
    "keepAlive": ("keep_alive", _flag),
    "wireFormat.maxInactivityDuration": ("inactivity_duration", _count),
    "wireFormat.maxInactivityDurationInitalDelay": ("inactivity_initial_delay", _count),
    "wireFormat.maxFrameSize": ("frame_bytes_max", _count),
}
TLS_OPTIONS: Table = {
    "socket.verifyHostName": ("verify_host_name", _flag),
    "ssl.caFile": ("ca_file", Path),
    "ssl.certificateFile": ("certificate_file", Path),
    "ssl.keyFile": ("key_file", Path),
}
FAILOVER_OPTIONS: Table = {
    "initialReconnectDelay": ("initial_reconnect_delay", _count),
    "maxReconnectDelay": ("max_reconnect_delay", _count),
    "useExponentialBackOff": ("use_exponential_back_off", _flag),
    "reconnectDelayExponent": ("reconnect_delay_exponent", _exponent),
    "maxReconnectAttempts": ("max_reconnect_attempts", _limit),
    "startupMaxReconnectAttempts": ("startup_max_reconnect_attempts", _limit),
    "randomize": ("randomize", _flag),
    "timeout": ("timeout", _limit),
    "updateURIsSupported": ("update_uris_supported", _flag),
    "warnAfterReconnectAttempts": ("warn_after_reconnect_attempts", _limit),
    "priorityBackup": ("priority_backup", _flag),
    "priorityURIs": ("priority_uris", _uris),
}
TIMEOUT_OPTIONS: Table = {
    "jms.sendTimeout": ("send", _seconds_or_never),
    "jms.requestTimeout": ("request", _seconds_or_never),
    "jms.closeTimeout": ("close", _seconds),
}
_PREFETCH_ALL: Table = {"jms.prefetchPolicy.all": ("all", _prefetch)}
PREFETCH_OPTIONS: Table = {
    "jms.prefetchPolicy.queuePrefetch": ("queue", _prefetch),
    "jms.prefetchPolicy.topicPrefetch": ("topic", _prefetch),
    "jms.prefetchPolicy.durableTopicPrefetch": ("durable_topic", _prefetch),
    "jms.prefetchPolicy.queueBrowserPrefetch": ("queue_browser", _prefetch),
    "jms.prefetchPolicy.optimizeDurableTopicPrefetch": ("optimized_durable_topic", _prefetch),
}
REDELIVERY_OPTIONS: Table = {
    "jms.redeliveryPolicy.maximumRedeliveries": ("maximum_redeliveries", _limit),
    "jms.redeliveryPolicy.initialRedeliveryDelay": ("initial_redelivery_delay", _seconds),
    "jms.redeliveryPolicy.redeliveryDelay": ("redelivery_delay", _seconds),
    "jms.redeliveryPolicy.useExponentialBackOff": ("use_exponential_back_off", _flag),
    "jms.redeliveryPolicy.backOffMultiplier": ("back_off_multiplier", _multiplier),
    "jms.redeliveryPolicy.maximumRedeliveryDelay": (
        "maximum_redelivery_delay",
        _seconds_or_unlimited,
    ),
    "jms.redeliveryPolicy.useCollisionAvoidance": ("use_collision_avoidance", _flag),
    "jms.redeliveryPolicy.collisionAvoidancePercent": ("collision_avoidance_factor", _share),
}
CONNECTION_OPTIONS: Table = {
    "jms.optimizeAcknowledge": ("optimize_acknowledge", _flag),
    "jms.optimizeAcknowledgeTimeOut": ("optimize_acknowledge_timeout", _seconds),
    "jms.checkForDuplicates": ("check_for_duplicates", _flag),
    "jms.messagePrioritySupported": ("message_priority_supported", _flag),
    "jms.alwaysSyncSend": ("always_sync_send", _flag),
    "jms.useAsyncSend": ("use_async_send", _flag),
    "jms.useCompression": ("use_compression", _flag),
    "jms.exclusiveConsumer": ("exclusive_consumer", _flag),
    "jms.dispatchAsync": ("dispatch_async", _flag),
    "jms.producerWindowSize": ("producer_window_size", _count),
}
BLOB_OPTIONS: Table = {
    "jms.blobTransferPolicy.uploadUrl": ("upload_url", _upload_url),
    "jms.blobTransferPolicy.brokerUploadUrl": ("broker_upload_url", _upload_url),
    "jms.blobTransferPolicy.defaultUploadUrl": ("default_upload_url", _upload_url),
}
_JMS_TABLES = (
    TIMEOUT_OPTIONS,
    _PREFETCH_ALL,
    PREFETCH_OPTIONS,
    REDELIVERY_OPTIONS,
    CONNECTION_OPTIONS,
    BLOB_OPTIONS,
)
