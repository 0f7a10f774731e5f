"""Kombu's URLs lead to the broker that they name, and are shown without passwords."""

from pathlib import Path

import kombu
import pytest

import lockkeeper.integrations.kombu  # noqa: F401
from lockkeeper.client.errors import BrokerUrlError
from lockkeeper.client.tls import TlsOptions
from lockkeeper.integrations.kombu.address import Target, target_of


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("openwire://host", Target("tcp://host")),
        ("openwire://host:1//", Target("tcp://host:1")),
        ("openwire://me:s%40y@host:1/", Target("tcp://host:1", "me", "s@y")),
        ("openwire+ssl://host", Target("ssl://host")),
        ("openwire://", Target("tcp://localhost")),
        ("tcp://host?tcpNoDelay=false", Target("tcp://host?tcpNoDelay=false")),
        (
            "failover:(openwire://a:1,openwire+ssl://b)?jms.userName=me",
            Target("failover:(tcp://a:1,ssl://b)?jms.userName=me"),
        ),
    ],
)
def test_urls(url: str, target: Target) -> None:
    assert target_of(kombu.Connection(f"lockkeeper+{url}")) == target


def test_the_next_of_several_urls() -> None:
    connection = kombu.Connection(
        "lockkeeper+openwire://a:1;lockkeeper+openwire+ssl://me:secret@b:2"
    )
    assert target_of(connection) == Target("tcp://a:1")
    connection.maybe_switch_next()
    target = target_of(connection, encrypted=True)
    assert target == Target("ssl://b:2", "me", "secret")
    assert connection.get_transport_cls().__name__ == "TlsTransport"


def test_celerys_settings_for_tls() -> None:
    connection = kombu.Connection(
        "lockkeeper+openwire://host", ssl={"ca_certs": "ca.pem", "check_hostname": False}
    )
    tls = TlsOptions(ca_file=Path("ca.pem"), verify_host_name=False)
    assert target_of(connection) == Target("ssl://host", tls=tls)
    connection.ssl = {"cert_reqs": 0}
    with pytest.raises(BrokerUrlError, match="broker_use_ssl: cert_reqs=0"):
        target_of(connection)


def test_a_password_may_be_made_when_it_is_needed() -> None:
    connection = kombu.Connection("lockkeeper+openwire://host", userid="me", password=lambda: "x")
    assert target_of(connection) == Target("tcp://host", "me", "x")


def test_a_virtual_host_is_refused() -> None:
    with pytest.raises(BrokerUrlError, match="no virtual hosts"):
        target_of(kombu.Connection("lockkeeper+openwire://host/shop"))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("openwire://me:secret@host:1", "openwire://me:**@host:1"),
        ("openwire://host:1", "openwire://host:1"),
        (
            "failover:(tcp://a,tcp://b)?jms.userName=me&jms.password=secret&timeout=3",
            "failover:(tcp://a,tcp://b)?jms.userName=me&jms.password=**&timeout=3",
        ),
    ],
)
def test_what_is_shown(url: str, shown: str) -> None:
    connection = kombu.Connection(f"lockkeeper+{url}")
    assert connection.as_uri() == f"lockkeeper+{shown}"
    assert connection.as_uri(include_password=True) == f"lockkeeper+{url}"
    assert "secret" not in repr(connection)
