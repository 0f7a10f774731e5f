"""What a network asks of a Broker: connectors, a user with its rights, replay, a way in."""

from typing import Any

import yaml
from cluster_objects import SURROUNDINGS, by_kind, child, pod_spec
from network_objects import candidate, network

from lockkeeper_api.broker import BrokerSpec
from lockkeeper_api.broker_network import BrokerNetworkSpec
from lockkeeper_api.destination import DestinationSpec
from lockkeeper_api.network_uris import read_network_uri
from lockkeeper_operator.brokers.desired.configuration import configuration
from lockkeeper_operator.brokers.desired.network_part import NetworkPart
from lockkeeper_operator.brokers.desired.revision import revision_of
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.destinations.desired.declaration import declaration
from lockkeeper_operator.networks.desired import secret
from lockkeeper_operator.networks.desired.parts import part_of
from lockkeeper_operator.networks.plan import membership_of

REPLAY = {"replayWhenNoConsumers": True}


def part(
    *more: Any, listener: dict[str, Any] | None = None, authority: str = "", **spec: Any
) -> NetworkPart:
    """Return the part of Broker a in a network with b, whose first listener is given."""
    listeners = [{"name": "openwire", **(listener or {})}]
    found = network(**spec)
    membership = membership_of(found, [candidate("a"), candidate("b", listeners=listeners), *more])
    authorities = {("shop", "b"): authority} if authority else {}
    return part_of(found, membership.links, ("shop", "a"), "water", authorities, "cluster.local")


def broker(*parts: NetworkPart, **spec: Any) -> Subject:
    return Subject(
        "a", "shop", "uid-of-a", BrokerSpec.model_validate(spec), SURROUNDINGS,
        passwords={"client": "secret"},
        password_hashes={"client": "hash-of-client", "network.shop.net": "hash-of-net"},
        networks=parts,
    )  # fmt: skip


def configured(*parts: NetworkPart, **spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(configuration(broker(*parts, **spec)))["spec"]
    return found


def test_a_connector_leads_to_the_service_of_the_others_master() -> None:
    (connector,) = configured(part(connector={"prefetchSize": 5}))["networkConnectors"]
    assert connector.pop("name").startswith("net.b.")
    uri = read_network_uri(connector.pop("uri"))
    assert [str(each) for each in uri.targets[0].addresses] == [
        "tcp://b-openwire.shop.svc.cluster.local:61616"
    ]
    assert uri.back_off.max_reconnect_delay == 2000
    assert connector == {
        "prefetchSize": 5,
        "userName": "network.shop.net",
        "passwordFile": "/etc/lockkeeper-networks/network.shop.net.password",
    }


def test_an_encrypted_listener_is_dialled_so_and_the_authority_comes_along() -> None:
    encrypted = part(listener={"port": 61617, "tls": {}}, authority="PEM")
    (connector,) = encrypted.connectors
    assert connector.uri.startswith("static:(ssl://b-openwire.shop.svc.cluster.local:61617?")
    assert connector.tls is not None
    assert connector.tls.ca_file == f"/etc/lockkeeper-networks/{connector.name}.ca.crt"
    data = child(broker(encrypted), "Secret", "a-networks")["data"]
    assert set(data) == {"network.shop.net.password", f"{connector.name}.ca.crt"}
    # Without one that is known, the system's authorities are asked.
    (plain,) = part(listener={"tls": {"secretName": "bought"}}).connectors
    assert (plain.tls, plain.uri.startswith("static:(ssl://")) == (None, True)


def test_messages_find_their_way_by_the_hub() -> None:
    hub: dict[str, Any] = {"topology": "HubAndSpoke", "hub": {"name": "b"}}
    assert part(**hub).connectors[0].network_ttl == 2
    assert part(**hub, connector={"networkTTL": 5}).connectors[0].network_ttl == 5
    assert part(**hub, connector={"messageTTL": 1}).connectors[0].network_ttl is None
    assert part().connectors[0].network_ttl is None


def test_bridges_of_brokers_that_are_called_the_same_have_names_of_their_own() -> None:
    naming = network(
        topology="HubAndSpoke",
        hub={"name": "hub"},
        brokers={"references": [{"name": "b", "namespace": "x"}, {"name": "b", "namespace": "y"}]},
    )
    members = [candidate("hub"), candidate("b", "x"), candidate("b", "y")]
    links = membership_of(naming, members).links
    found = [
        connector.name
        for member in members
        for connector in part_of(naming, links, member.key, "", {}, "local").connectors
    ]
    assert len(found) == len(set(found)) == 4
    assert all(len(name) <= 63 for name in found)


def test_the_user_of_a_network_is_known_to_brokers_that_run() -> None:
    alone, joined = broker(), broker(part())
    assert revision_of(joined) == revision_of(alone)
    assert pod_spec(joined) == pod_spec(alone)
    users = child(joined, "Secret", "a-users")["data"]
    assert users != child(alone, "Secret", "a-users")["data"]
    assert [user["name"] for user in configured(part())["access"]["users"]] == [
        "client", "network.shop.net",
    ]  # fmt: skip
    assert "a-networks" not in [each["metadata"]["name"] for each in by_kind(alone)["Secret"]]


def test_a_bridge_gets_the_rights_that_it_needs_where_there_are_any() -> None:
    own = {"match": "ORDERS.>", "read": ["client"]}
    assert "permissions" not in configured(part())["access"]
    assert configured(part(), access={"permissions": [own]})["access"]["permissions"] == [
        own,
        {"match": ">", "write": ["network.shop.net"], "admin": ["network.shop.net"]},
        {"match": "ActiveMQ.Advisory.>", "kind": "Topic", "read": ["network.shop.net"]},
    ]
    hub: dict[str, Any] = {"topology": "HubAndSpoke", "hub": {"name": "a"}}
    both_ways = part(**hub, connector={"duplex": True})
    permissions = configured(both_ways, access={"permissions": [own]})["access"]["permissions"]
    assert permissions[1]["read"] == ["network.shop.net"]


def test_a_broker_that_nobody_dials_lets_nobody_in() -> None:
    hub: dict[str, Any] = {"topology": "HubAndSpoke", "hub": {"name": "b"}}
    spoke = part(**hub, connector={"duplex": True})
    assert len(spoke.connectors) == 1
    own = {"match": "ORDERS.>", "read": ["client"]}
    access = configured(spoke, access={"permissions": [own]})["access"]
    assert access == {**configured(access={"permissions": [own]})["access"]}
    assert child(broker(spoke), "Secret", "a-users") == child(broker(), "Secret", "a-users")


def test_queues_send_back_what_nobody_takes_unless_they_say_otherwise() -> None:
    rest = {"match": ">", "kind": "Queue", "networkBridgeFilter": REPLAY}
    assert configured(part())["destinationPolicies"] == [rest]
    slow = {"replayWhenNoConsumers": True, "replayDelay": "5s"}
    entries: list[dict[str, Any]] = [
        {"match": "A", "memoryLimit": "1Mi"},
        {"match": "B", "networkBridgeFilter": slow},
        {"match": "T", "kind": "Topic", "recorded": True},
    ]
    found = configured(part(), destinationPolicies=entries)["destinationPolicies"]
    assert found == [rest, {**entries[0], "networkBridgeFilter": REPLAY}, *entries[1:]]
    all_queues = [{"match": ">", "recorded": True}]
    assert configured(part(), destinationPolicies=all_queues)["destinationPolicies"] == [
        {"match": ">", "recorded": True, "networkBridgeFilter": REPLAY}
    ]
    off = part(networkBridgeFilter={"replayWhenNoConsumers": False})
    assert "destinationPolicies" not in configured(off)


def test_so_do_queues_with_a_policy_of_their_own() -> None:
    resource = {"metadata": {"namespace": "shop", "name": "orders"}}
    chosen = part().bridge_filter

    def told(**said: Any) -> Any:
        spec = DestinationSpec.model_validate({"brokerRef": {"name": "a"}, **said})
        return declaration(resource, spec, chosen).policy

    assert told(policy={"recorded": True}) == {"recorded": True, "networkBridgeFilter": REPLAY}
    assert told(kind="Topic", policy={"recorded": True}) == {"recorded": True}
    assert told() is None


def test_a_network_policy_lets_bridges_in() -> None:
    policy: dict[str, Any] = {"networkPolicy": {"clients": [{"podSelector": {}}]}}
    rule = child(broker(part(), security=policy), "NetworkPolicy")["spec"]["ingress"][0]
    assert rule["from"] == [
        {"podSelector": {}},
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}},
            "podSelector": {
                "matchLabels": {
                    "app.kubernetes.io/name": "lockkeeper", "app.kubernetes.io/instance": "b",
                }
            },
        },
    ]  # fmt: skip


def test_the_user_has_a_secret_that_goes_with_the_network() -> None:
    found = secret.build(network(), "water")
    assert found["metadata"]["name"] == "net-network"
    assert found["metadata"]["ownerReferences"][0]["uid"] == "uid-of-net"
    assert found["type"] == "kubernetes.io/basic-auth"


def test_a_user_of_a_long_name_differs_from_all_others() -> None:
    spec = BrokerNetworkSpec.model_validate({"brokers": {"selector": {}}})
    names = {
        type(network())(namespace, "n" * 40, "", spec).user
        for namespace in ("x" * 63, "x" * 62 + "y")
    }
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)
