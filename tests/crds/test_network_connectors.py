"""Network connectors of a Broker: ActiveMQ's names, and errors that tell the way out."""

import pytest
from pydantic import ValidationError

from lockkeeper_api.broker import BrokerSpec
from lockkeeper_api.multicast_uris import MulticastGroup
from lockkeeper_api.network_uris import BackOff, PeerAddress, Target, read_network_uri

ONE, TWO = PeerAddress("one", 61616), PeerAddress("two", 61617)


@pytest.mark.parametrize(
    "text, targets",
    [
        ("tcp://one:61616", (Target((ONE,)),)),
        ("static:(tcp://one:61616,tcp://two:61617)", (Target((ONE,)), Target((TWO,)))),
        ("static://(tcp://one:61616)", (Target((ONE,)),)),
        ("masterslave:(tcp://one:61616,tcp://two:61617)", (Target((ONE, TWO)),)),
        ("failover:(tcp://one:61616,tcp://two:61617)", (Target((ONE, TWO), True),)),
        ("static:(failover:(tcp://one:61616,tcp://two:61617)?randomize=false,tcp://one:61616)",
         (Target((ONE, TWO)), Target((ONE,)))),
        ("static:(masterslave:(tcp://one:61616,tcp://two:61617))", (Target((ONE, TWO)),)),
    ],
)  # fmt: skip
def test_uris_name_targets(text: str, targets: tuple[Target, ...]) -> None:
    assert read_network_uri(text).targets == targets


def test_options_are_read() -> None:
    uri = read_network_uri(
        "static:(ssl://[::1]:1?socket.verifyHostName=false&wireFormat.maxInactivityDuration=5)"
        "?initialReconnectDelay=7&useExponentialBackOff=false"
    )
    (target,) = uri.targets
    (address,) = target.addresses
    assert (address.host, address.is_encrypted, address.verify_host_name) == ("::1", True, False)
    assert address.inactivity_duration == 5
    assert str(address) == "ssl://[::1]:1"
    assert uri.back_off.initial_reconnect_delay == 7
    assert not uri.back_off.use_exponential_back_off


def test_a_group_has_activemqs_defaults() -> None:
    uri = read_network_uri("multicast://default?maxReconnectDelay=7")
    assert uri.targets == ()
    assert uri.multicast == MulticastGroup("239.255.2.3", 6155, "default", 500, 1)
    assert uri.back_off == BackOff(5_000, 7, use_exponential_back_off=False)
    named = read_network_uri("multicast://239.1.2.3:7000?group=a&timeToLive=4").multicast
    assert named == MulticastGroup("239.1.2.3", 7000, "a", 500, 4)


def test_a_listener_is_told_of_in_a_group() -> None:
    listener = {"name": "openwire", "discoveryUri": "multicast://default"}
    (found,) = BrokerSpec.model_validate({"listeners": [listener]}).listeners
    assert found.discovery_uri == "multicast://default"
    with pytest.raises(ValidationError, match="expected multicast://default"):
        BrokerSpec.model_validate({"listeners": [listener | {"discoveryUri": "tcp://a:1"}]})


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("statik:(tcp://one:1)", "did you mean 'static'"),
        ("static:(tcp://one)", "expected tcp://HOST:PORT"),
        ("static:(tcp://one:99999)", "expected tcp://HOST:PORT"),
        ("static:(tcp://one..example:1)", "'one..example' is no host name"),
        ("static:(tcp://one:1)?backOffMultiplier=0.5", "expected 1 to 1000"),
        ("static:(tcp://one:1)?backOffMultiplier=nan", "expected 1 to 1000"),
        ("static:()", "names no broker"),
        ("static:(tcp://one:1)?initialReconectDelay=1", "did you mean 'initialReconnectDelay'"),
        (
            "static:(tcp://one:1?wireFormat.maxFrameSise=1)",
            "did you mean 'wireFormat.maxFrameSize'",
        ),
        ("static:(tcp://one:1)?maxReconnectDelay=soon", "expected a number"),
        ("failover:(tcp://one:1)?maxReconnectAttempts=5", "a bridge begins anew by itself"),
        ("multicast://defualt", "expected multicast://default, or multicast://ADDRESS:PORT"),
        ("multicast://10.0.0.1:6155", "an IPv4 multicast address"),
        ("multicast://default?grup=a", "did you mean 'group'"),
        ("multicast://default?keepAliveInterval=1", "expected 50 to 60000 ms"),
        ("multicast://default?networkInterface=a/b", "name of a network interface"),
        ("multicast://default?timeToLive=256", "at most 255"),
        ("multicast://default?group=a%b", "letters, digits"),
        ("ldap://host", "ldap discovery is not supported: name the brokers"),
    ],
)
def test_uris_of_no_use_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="(?s)" + complaint):
        read_network_uri(text)


def spec(**connector: object) -> BrokerSpec:
    return BrokerSpec.model_validate(
        {"networkConnectors": [{"uri": "static:(tcp://one:1)", **connector}]}
    )


def test_activemqs_defaults_hold() -> None:
    (connector,) = spec().network_connectors
    assert connector.name == "NC"
    assert connector.conduit_subscriptions
    assert not connector.duplex
    assert (connector.prefetch_size, connector.consumer_priority_base) == (1000, -5)


def test_ttls_are_given_once() -> None:
    with pytest.raises(ValidationError, match="networkTTL stands for"):
        spec(networkTTL=2, messageTTL=3)


def test_names_are_unique() -> None:
    one = {"uri": "tcp://one:1"}
    with pytest.raises(ValidationError, match="the same name, 'NC'"):
        BrokerSpec.model_validate({"networkConnectors": [one, one]})


def test_a_wrong_wildcard_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"excludedDestinations\.0\.name"):
        spec(excludedDestinations=[{"name": "a.>.b", "kind": "Queue"}])


def test_what_is_not_supported_says_so() -> None:
    with pytest.raises(ValidationError, match="advisoryForFailedForward is not supported: "):
        spec(advisoryForFailedForward=True)


def test_what_is_not_supported_may_be_off_as_with_activemq() -> None:
    assert spec(advisoryForFailedForward=False) == spec()


def test_queues_behind_virtual_destinations_are_told_of_with_their_consumers() -> None:
    with pytest.raises(ValidationError, match="OnCreation needs useVirtualDestSubs"):
        BrokerSpec.model_validate({"useVirtualDestSubsOnCreation": True})


def test_subscriptions_are_synchronized_for_topics_that_are_listed() -> None:
    with pytest.raises(ValidationError, match="dynamicallyIncludedDestinations: list them"):
        spec(syncDurableSubs=True)
    included = [{"name": ">", "kind": "Topic"}]
    found = spec(syncDurableSubs=True, dynamicallyIncludedDestinations=included)
    assert found.network_connectors[0].sync_durable_subs


def test_clients_are_told_of_others_where_this_broker_is_known() -> None:
    listener = {"name": "openwire", "updateClusterClients": True}
    with pytest.raises(ValidationError, match="need advertisedUrls"):
        BrokerSpec.model_validate({"listeners": [listener]})
    listener |= {"advertisedUrls": ["tcp://a:1"], "updateClusterFilter": "hub-("}
    with pytest.raises(ValidationError, match="'hub-\\(' is no regular expression"):
        BrokerSpec.model_validate({"listeners": [listener]})
