"""Broker URLs: ActiveMQ's options and defaults; anything unknown is an error that names it."""

from pathlib import Path

import pytest

from lockkeeper.client import BrokerUrlError, TlsOptions
from lockkeeper.client.url import parse_others, parse_url


def test_a_tcp_url_names_one_broker_and_no_failover() -> None:
    url = parse_url("tcp://broker.example:61617")
    (address,) = url.addresses
    assert (address.host, address.port, url.failover) == ("broker.example", 61617, None)
    assert str(address) == "tcp://broker.example:61617"


def test_the_port_is_61616_unless_said_otherwise() -> None:
    assert parse_url("tcp://broker.example").addresses[0].port == 61616


def test_an_encrypted_broker_is_at_61617_unless_said_otherwise() -> None:
    url = parse_url(
        "ssl://broker.example?ssl.caFile=/ca.pem&ssl.certificateFile=me.pem&ssl.keyFile=me.key"
        "&socket.verifyHostName=false&keepAlive=true"
    )
    (address,) = url.addresses
    assert str(address) == "ssl://broker.example:61617"
    assert address.tls == TlsOptions(Path("/ca.pem"), Path("me.pem"), Path("me.key"), False)
    assert address.options.keep_alive


def test_what_the_url_does_not_say_of_encryption_comes_from_elsewhere() -> None:
    given = TlsOptions(ca_file=Path("ca.pem"))
    url = parse_url(
        "failover:(ssl://a:1?ssl.caFile=other.pem,ssl://b:2,tcp://c:3)"
        "?nested.socket.verifyHostName=false",
        given,
    )
    assert [address.tls for address in url.addresses] == [
        TlsOptions(ca_file=Path("other.pem"), verify_host_name=False),
        TlsOptions(ca_file=Path("ca.pem"), verify_host_name=False),
        None,
    ]


@pytest.mark.parametrize("text", ["tcp://a:1?{}", "failover:(tcp://a:1)?{}"])
def test_user_and_password_may_be_in_the_url(text: str) -> None:
    url = parse_url(text.format("jms.userName=anna&jms.password=t%26a"))
    assert (url.user, url.password) == ("anna", "t&a")


def test_no_error_shows_the_password() -> None:
    with pytest.raises(BrokerUrlError) as error:
        parse_url("failover:(tcp://a:1)?jms.password=tea&nonsense=1")
    assert "tea" not in str(error.value)
    assert "jms.password=***&nonsense=1" in str(error.value)


def test_encryption_options_are_for_encrypted_addresses() -> None:
    with pytest.raises(BrokerUrlError, match=r"unknown option 'ssl\.caFile'"):
        parse_url("tcp://a:1?ssl.caFile=ca.pem")


def test_ipv6_addresses_stand_in_brackets() -> None:
    (address,) = parse_url("tcp://[::1]:61616").addresses
    assert address.host == "::1"
    assert str(address) == "tcp://[::1]:61616"


def test_tcp_options_are_read() -> None:
    url = parse_url(
        "tcp://a:1?connectionTimeout=500&tcpNoDelay=false&keepAlive=true"
        "&wireFormat.maxInactivityDuration=0&wireFormat.maxFrameSize=1000"
    )
    options = url.addresses[0].options
    assert options.connection_timeout == 500
    assert options.tcp_no_delay is False
    assert options.keep_alive is True
    assert options.inactivity_duration == 0
    assert options.frame_bytes_max == 1000


@pytest.mark.parametrize(
    "text", ["failover:(tcp://a:1,tcp://b:2)", "failover://(tcp://a:1,tcp://b:2)"]
)
def test_a_failover_url_names_several_with_activemqs_defaults(text: str) -> None:
    url = parse_url(text)
    assert [str(address) for address in url.addresses] == ["tcp://a:1", "tcp://b:2"]
    failover = url.failover
    assert failover is not None
    assert failover.randomize
    assert (failover.initial_reconnect_delay, failover.max_reconnect_delay) == (10, 30_000)
    assert (failover.max_reconnect_attempts, failover.startup_max_reconnect_attempts) == (-1, -1)
    assert failover.timeout == -1


def test_failover_options_are_read_and_nested_ones_go_to_each_address() -> None:
    url = parse_url(
        "failover:(tcp://a:1?keepAlive=true, tcp://b:2)?randomize=false&initialReconnectDelay=5"
        "&maxReconnectAttempts=3&timeout=3000&nested.connectionTimeout=100"
    )
    assert url.failover is not None
    assert not url.failover.randomize
    assert url.failover.initial_reconnect_delay == 5
    assert url.failover.max_reconnect_attempts == 3
    assert url.failover.timeout == 3000
    assert [address.options.connection_timeout for address in url.addresses] == [100, 100]
    assert [address.options.keep_alive for address in url.addresses] == [True, False]


def test_the_first_address_has_priority_unless_others_are_named() -> None:
    text = "failover:(tcp://a:1?keepAlive=true,tcp://b:2)?priorityBackup=true"
    first, others = parse_url(text), parse_url(text + "&priorityURIs=tcp://b:2,tcp://c:3")
    assert first.priority == first.addresses[:1]
    assert [str(each) for each in others.addresses] == ["tcp://a:1", "tcp://b:2", "tcp://c:3"]
    assert others.priority == others.addresses[1:]
    assert parse_url("failover:(tcp://a:1)?priorityURIs=tcp://a:1").priority == ()
    with pytest.raises(BrokerUrlError, match="priorityURIs"):
        parse_url(text + "&priorityURIs=tcp://b:2,,")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("tcp://a:1?soLinger=3", "soLinger"),
        ("tcp://a:1?randomize=false", "randomize"),
        ("failover:(tcp://a:1)?keepAlive=true", "keepAlive"),
        ("failover:(tcp://a:1)?nested.keepalive=true", "keepalive"),
        ("failover:(tcp://a:1)?randomize=perhaps", "randomize=perhaps"),
        ("failover:(tcp://a:1)?initialReconnectDelay=-5", "initialReconnectDelay=-5"),
        ("failover:(tcp://a:1)?maxReconnectAttempts=some", "maxReconnectAttempts=some"),
        ("tcp://a:99999", "port"),
        ("tcp://", "tcp://host:port"),
        ("tcp://a:1/path", "tcp://host:port"),
        ("tcp://a:1?keepAlive", "options"),
        ("stomp://a:1", "stomp://a:1"),
        ("failover:tcp://a:1", "failover:(uri,uri)"),
        ("failover:()", "''"),
        ("failover:(tcp://a:1)randomize=false", "failover:(uri,uri)"),
    ],
)
def test_what_cannot_be_understood_is_named(text: str, named: str) -> None:
    with pytest.raises(BrokerUrlError) as caught:
        parse_url(text)
    assert named in str(caught.value)


@pytest.mark.parametrize("host", ["[:x]:61616", "[::1:61616", "12].0.0.1:1"])
def test_a_host_in_brackets_that_is_no_address_is_refused(host: str) -> None:
    for text in (f"tcp://{host}", f"failover:(tcp://a:1,ssl://{host})"):
        with pytest.raises(BrokerUrlError):
            parse_url(text)


def test_what_jms_options_say_is_read() -> None:
    url = parse_url(
        "failover:(tcp://a:1)?jms.prefetchPolicy.all=7&jms.prefetchPolicy.queuePrefetch=3"
        "&jms.redeliveryPolicy.maximumRedeliveries=2&jms.redeliveryPolicy.initialRedeliveryDelay=50"
        "&jms.redeliveryPolicy.useCollisionAvoidance=true&jms.optimizeAcknowledge=true"
        "&jms.optimizeAcknowledgeTimeOut=100&jms.clientID=me&jms.sendTimeout=1500"
        "&jms.requestTimeout=0&timeout=3000&jms.producerWindowSize=1000"
    )
    options, redelivery = url.options, url.redelivery
    assert (options.prefetch.queue, options.prefetch.topic) == (3, 7)
    assert (redelivery.maximum_redeliveries, redelivery.initial_redelivery_delay) == (2, 0.05)
    assert redelivery.use_collision_avoidance
    assert (options.optimize_acknowledge, options.optimize_acknowledge_timeout) == (True, 0.1)
    assert url.client_id == "me"
    timeouts = options.timeouts
    assert (timeouts.send, timeouts.request, timeouts.no_broker) == (1.5, None, 3.0)
    assert options.producer_window_size == 1000


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("tcp://a:1?keepalive=true", "keepAlive"),
        ("tcp://a:1?jms.prefetchPolicy.queuePrefetsch=1", "jms.prefetchPolicy.queuePrefetch"),
        ("failover:(tcp://a:1)?randomise=false", "randomize"),
        ("failover:(tcp://a:1)?jms.optimiseAcknowledge=true", "jms.optimizeAcknowledge"),
        ("failover:(tcp://a:1)?nested.tcpNodelay=true", "tcpNoDelay"),
    ],
)
def test_an_unknown_option_names_the_nearest(text: str, nearest: str) -> None:
    with pytest.raises(BrokerUrlError, match=f"did you mean '{nearest}'"):
        parse_url(text)


def test_addresses_that_a_broker_tells_of_have_the_options_of_the_first() -> None:
    url = parse_url("failover:(tcp://a:1?keepAlive=true)")
    found = parse_others(("tcp://b:2?x=1", "ssl://c:3", "nonsense", "tcp://d:4"), url)
    assert [str(address) for address in found] == ["tcp://b:2", "tcp://d:4"]
    assert all(address.options.keep_alive for address in found)
