"""The status of a network: what stands in it, what it waits for, who has left."""

from typing import Any

from network_objects import candidate, network

from lockkeeper_operator.networks.desired.connectors import connector_name
from lockkeeper_operator.networks.events import events_of
from lockkeeper_operator.networks.observed import Candidate
from lockkeeper_operator.networks.plan import membership_of
from lockkeeper_operator.networks.status.facts import NetworkFacts
from lockkeeper_operator.networks.status.status import invalid_status, network_status
from lockkeeper_operator.polling.report import BridgeReport
from lockkeeper_operator.polling.views import report_of, rounded_count

NOW = "2027-03-01T12:00:00Z"
PAIR = (candidate("a"), candidate("b"))


def facts(
    *candidates: Candidate, failures: dict[str, str] | None = None, silent: str = "", **spec: Any
) -> NetworkFacts:
    """Return facts of a network: bridges are connected but for those that Brokers fail to make."""
    found = network(**spec)
    membership = membership_of(found, candidates)
    said = {
        member.key: tuple(
            BridgeReport(
                connector_name(found, link),
                member.name not in (failures or {}),
                (failures or {}).get(member.name, ""),
                waiting=100,
                stranded=10,
            )
            for link in membership.links
            if link.dialler == member
        )
        for member in membership.members
        if member.name != silent
    }
    return NetworkFacts(found, membership, said)


def status(of: NetworkFacts, previous: dict[str, Any] | None = None) -> dict[str, Any]:
    found = network_status(of, previous or {}, 3, NOW)
    assert found is not None
    return found


def conditions(of: NetworkFacts) -> dict[str, tuple[str, str, str]]:
    return {
        each["type"]: (each["status"], each["reason"], each["message"])
        for each in status(of)["conditions"]
    }


def test_a_network_whose_bridges_are_connected_is_ready() -> None:
    told = "2 Brokers have 2 bridges, all connected"
    assert conditions(facts(*PAIR)) == {
        "Ready": ("True", "Connected", told),
        "Reconciling": ("False", "Connected", told),
        "Stalled": ("False", "Connected", told),
    }


def test_a_status_that_says_the_same_is_not_written() -> None:
    found = status(facts(*PAIR))
    assert network_status(facts(*PAIR), found, 3, "2027-03-02T12:00:00Z") is None


def test_figures_are_those_of_each_broker() -> None:
    found = status(facts(*PAIR, failures={"b": "refused"}))
    assert (found["brokers"], found["bridges"]) == (2, {"expected": 2, "connected": 1})
    assert found["members"] == [
        {
            "namespace": "shop", "name": "a", "bridges": {"expected": 1, "connected": 1},
            "waiting": 100, "stranded": 10,
        },
        {
            "namespace": "shop", "name": "b", "bridges": {"expected": 1, "connected": 0},
            "waiting": 100, "stranded": 10,
        },
    ]  # fmt: skip


def test_what_is_missing_is_told_with_its_cause() -> None:
    assert conditions(facts(*PAIR, failures={"b": "refused"}))["Reconciling"] == (
        "True", "BridgesDown",
        "1 of 2 bridges are not connected: shop/b to shop/a: refused",
    )  # fmt: skip
    assert conditions(facts(*PAIR, silent="a"))["Reconciling"][2].endswith(
        "shop/a to shop/b: the dialling Broker has no master that answers"
    )
    new = NetworkFacts(network(), membership_of(network(), PAIR), {("shop", "a"): ()})
    assert "shop/a to shop/b: the dialling Broker does not have it yet" in str(conditions(new))
    many = facts(*(candidate(name) for name in "abcde"), failures=dict.fromkeys("abcde", "no"))
    assert conditions(many)["Ready"][2].endswith("; and 17 more")


def test_a_network_of_one_waits_for_another() -> None:
    assert conditions(facts(candidate("a")))["Reconciling"][:2] == ("True", "TooFewBrokers")


def test_a_broker_that_is_not_there_is_waited_for() -> None:
    named = {"references": [{"name": "a"}, {"name": "b"}, {"name": "gone"}]}
    assert conditions(facts(*PAIR, brokers=named))["Reconciling"] == (
        "True", "BrokerNotFound", "there is no Broker shop/gone",
    )  # fmt: skip


def test_whoever_is_kept_out_takes_a_person() -> None:
    named = {"references": [{"name": "a"}, {"name": "b", "namespace": "x"}]}
    found = facts(candidate("a"), candidate("b", "x", allowed=False), brokers=named)
    assert conditions(found)["Stalled"][:2] == ("True", "NotAllowed")
    assert status(found)["refused"] == [
        {
            "namespace": "x", "name": "b", "reason": "NotAllowed",
            "message": "its allowedNetworks allows no networks of namespace shop",
        }
    ]  # fmt: skip
    taken = NetworkFacts(network(), membership_of(network(), PAIR), {}, "Secret belongs to x")
    assert conditions(taken)["Stalled"] == ("True", "Refused", "Secret belongs to x")


def test_an_invalid_spec_leaves_what_was_told_of_brokers() -> None:
    found = status(facts(*PAIR))
    refused = invalid_status("spec.hub: no", found, 4, NOW)
    assert refused is not None
    assert refused["members"] == found["members"]
    assert [each["status"] for each in refused["conditions"]] == ["False", "False", "True"]
    assert invalid_status("spec.hub: no", refused, 4, NOW) is None


def test_who_joins_and_who_leaves_is_told_with_what_waits_there() -> None:
    def told(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
        return [(each.reason, each.message) for each in events_of(before, after)]

    both, one = status(facts(*PAIR)), status(facts(candidate("a")))
    assert told({}, one) == [("BrokerJoined", "Broker shop/a has joined the network")]
    ((reason, message),) = told(both, one)
    assert reason == "MessagesLeftBehind"
    assert message.startswith("Broker shop/b has left the network with at least 100 messages")
    assert told(one, status(facts(candidate("b")))) == [
        ("BrokerJoined", "Broker shop/b has joined the network"),
        ("BrokerLeft", "Broker shop/a has left the network"),
    ]


def test_a_broker_tells_of_the_bridges_that_it_dials() -> None:
    said = {
        "role": "master",
        "bridges": [
            {
                "name": "net.b.1", "initiator": True, "state": "connected", "failure": None,
                "waiting": 734, "stranded": 0,
            },
            {"name": "in", "initiator": False, "state": "connected", "waiting": 3},
            {"name": "net.c.2", "initiator": True, "state": "waiting", "failure": "no answer"},
        ],
    }  # fmt: skip
    assert report_of(said).bridges == (
        BridgeReport("net.b.1", True, "", 100, 0),
        BridgeReport("net.c.2", False, "no answer"),
    )
    assert report_of({"role": "standby"}).bridges == ()
    assert [rounded_count(each) for each in (0, 1, 9, 10, 999, 1000)] == [0, 1, 1, 10, 100, 1000]
