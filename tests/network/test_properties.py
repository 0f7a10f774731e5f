"""Texts of networkProperties: as Java writes and reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.message.destination import queue, topic
from lockkeeper.network.java_properties import read, written
from lockkeeper.network.properties import properties_of, settings_of
from lockkeeper.network.settings import BridgeSettings, Included

ACTIVEMQ = (
    "#\n#Thu Nov 26 11:52:10 UTC 2026\ngcDestinationViews=true\nconsumerTTL=1\nduplex=true\n"
    "localUri=vm\\://A\nprefetchSize=1000\nconsumerPriorityBase=-5\npassword=p\nuserName=u\n"
    "uri=static\\:(tcp\\://127.0.0.1\\:40181?wireFormat.cacheEnabled\\=false)\nmessageTTL=3\n"
    "destinationFilter=ActiveMQ.Advisory.Consumer.>\nname=NC\nbrokerName=A\n"
    "dynamicallyIncludedDestinations=[queue\\://IN.>, topic\\://T?forceDurable\\=true]\n"
)
"""As ActiveMQ 5.17.2 sends them, some of them."""


def test_those_of_activemq_are_read() -> None:
    settings = settings_of(ACTIVEMQ)
    assert (settings.name, settings.duplex, settings.message_ttl) == ("NC", True, 3)
    assert (settings.user_name, settings.password) == ("u", "p")
    assert settings.dynamically_included == (
        Included(queue("IN.>")), Included(topic("T"), force_durable=True),
    )  # fmt: skip


def test_ours_come_back() -> None:
    settings = BridgeSettings(
        name="n", duplex=True, user_name="u ä", password="p=:\\", message_ttl=-1,
        excluded=(Included(queue("X.*")),), statically_included=(Included(topic("S")),),
    )  # fmt: skip
    assert settings_of(properties_of(settings, "b")) == settings


def test_a_password_is_told_only_where_it_is_needed() -> None:
    assert "secret" not in properties_of(BridgeSettings(user_name="u", password="secret"), "b")
    assert "secret" not in repr(BridgeSettings(user_name="u", password="secret"))


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="prefetchSize=many"):
        settings_of("prefetchSize=many\n")


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_any_text_comes_back(properties: dict[str, str]) -> None:
    assert read(written(properties)) == properties
