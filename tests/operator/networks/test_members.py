"""Networks of Brokers: who is in one, who is kept out and why, who dials whom."""

from itertools import permutations
from typing import Any

import pytest
from network_objects import candidate, network

from lockkeeper_api.broker_network import MEMBERS_MAX
from lockkeeper_operator.networks.desired.network import Network
from lockkeeper_operator.networks.observed import Candidate
from lockkeeper_operator.networks.plan import Membership, is_meant, membership_of

A, B, C = candidate("a"), candidate("b"), candidate("c")
HUB: dict[str, Any] = {"topology": "HubAndSpoke", "hub": {"name": "a"}}


def dials(found: Membership) -> list[str]:
    return sorted(f"{each.dialler.name}>{each.dialled.name}" for each in found.links)


def names(found: Membership) -> list[str]:
    return [member.name for member in found.members]


def reasons(of: Network, *candidates: Candidate) -> dict[str, str]:
    return {each.broker[1]: each.reason for each in membership_of(of, candidates).refusals}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, ["a>b", "a>c", "b>a", "b>c", "c>a", "c>b"]),
        ({"connector": {"duplex": True}}, ["a>b", "a>c", "b>c"]),
        (HUB, ["a>b", "a>c", "b>a", "c>a"]),
        # Spokes dial: firewalls between Brokers see connections to the hub alone.
        ({**HUB, "connector": {"duplex": True}}, ["b>a", "c>a"]),
    ],
)
def test_both_ends_dial_unless_bridges_are_duplex(spec: dict[str, Any], wanted: list[str]) -> None:
    for order in permutations((A, B, C)):
        assert dials(membership_of(network(**spec), order)) == wanted


@pytest.mark.parametrize(
    ("broker", "labels", "spec", "expected"),
    [
        (("shop", "a"), {"net": "yes"}, {}, True),
        (("shop", "a"), {"net": "no"}, {}, False),
        (("shop", "a"), {}, {}, False),
        (("other", "a"), {"net": "yes"}, {}, False),
        (("shop", "a"), {}, {"brokers": {"selector": {}}}, True),
        (("shop", "a"), {}, {"brokers": {"references": [{"name": "a"}]}}, True),
        (("other", "a"), {}, {"brokers": {"references": [{"name": "a"}]}}, False),
        (("shop", "a"), {}, HUB, True),
    ],
)
def test_a_broker_is_meant_by_its_labels_or_its_name(
    broker: tuple[str, str], labels: dict[str, str], spec: dict[str, Any], expected: bool
) -> None:
    assert is_meant(network(**spec), broker, labels) is expected


def test_a_selector_may_look_into_all_namespaces() -> None:
    everywhere = network(brokers={"selector": {}, "namespaces": "All"})
    assert is_meant(everywhere, ("other", "a"), {})


def test_a_broker_of_another_namespace_has_to_agree() -> None:
    stranger = candidate("x", "other", allowed=False)
    selecting = network(brokers={"selector": {}, "namespaces": "All"})
    found = membership_of(selecting, [A, stranger])
    assert (names(found), found.refusals) == (["a"], ())

    naming = network(brokers={"references": [{"name": "a"}, {"name": "x", "namespace": "other"}]})
    found = membership_of(naming, [A, stranger])
    (refusal,) = found.refusals
    assert (names(found), refusal.broker, refusal.reason) == (["a"], ("other", "x"), "NotAllowed")
    assert refusal.message == "its allowedNetworks allows no networks of namespace shop"


def test_whoever_is_kept_out_is_told_of_and_the_others_are_bridged() -> None:
    tls = {"secretName": "tls", "clientCertificates": "Required"}
    user = {"name": network().user, "secretName": "mine"}
    kept_out = [
        candidate("asks", listeners=[{"name": "openwire", "tls": tls}]),
        candidate("other", listeners=[{"name": "other"}]),
        candidate("silent", advisorySupport=False),
        candidate("taken", access={"users": [user]}),
        Candidate("shop", "wrong"),
    ]
    named = [{"name": name} for name in ("a", "b", "gone")]
    picky = network(brokers={"selector": {}, "references": named}, listener="openwire")
    assert reasons(picky, A, B, *kept_out) == {
        "asks": "ClientCertificates",
        "other": "NoListener",
        "silent": "NoAdvisories",
        "taken": "UserTaken",
        "wrong": "InvalidBroker",
        "gone": "BrokerNotFound",
    }
    assert dials(membership_of(picky, [A, B, *kept_out])) == ["a>b", "b>a"]


def test_a_network_without_its_hub_has_no_bridges() -> None:
    found = membership_of(network(**HUB), [B, C])
    assert (names(found), found.links) == (["b", "c"], ())
    assert [each.reason for each in found.refusals] == ["BrokerNotFound"]


def test_of_too_many_the_oldest_stay_and_the_hub() -> None:
    many = [candidate(f"m{n:02}", created=f"2027-01-{n + 1:02}") for n in range(MEMBERS_MAX)]
    late = candidate("a", created="2027-02-01")
    assert reasons(network(), *many, late) == {"a": "TooManyBrokers"}
    assert reasons(network(**HUB), *many, late) == {"m31": "TooManyBrokers"}
