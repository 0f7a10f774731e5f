"""Networks of Brokers: both ends are made, nobody restarts, who leaves is let go of."""

import asyncio
from typing import Any

from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world

from lockkeeper_operator.kubernetes.api.kinds import BROKER, BROKER_NETWORK, POD, SECRET

SECONDS_AT_REST = 2.0
EVERYBODY: dict[str, Any] = {"brokers": {"selector": {}}}
LABELLED: dict[str, Any] = {"brokers": {"selector": {"matchLabels": {"net": "yes"}}}}


async def begin(found: World, spec: dict[str, Any], *brokers: str) -> None:
    for name in brokers:
        await found.broker(name)
        await label(found, name, "yes")
    for name in brokers:
        await found.ready("Broker", name)
        found.nodes.brokers[name].waiting = 734
    await found.make(BROKER_NETWORK.name, "net", spec)


async def label(found: World, broker: str, value: str | None) -> None:
    change = {"metadata": {"labels": {"net": value}}}
    await found.api.merge(BROKER, found.namespace, broker, change)


def connectors(found: World, brokers: str) -> list[list[dict[str, Any]]]:
    """Return what the brokers of these Brokers dial by."""
    return [found.nodes.pod(f"{broker}-0").connectors for broker in brokers]


async def dialled(found: World, brokers: str, numbers: list[int]) -> None:
    """Wait until the brokers have so many connectors each."""

    async def have() -> bool:
        return [len(each) for each in connectors(found, brokers)] == numbers

    await eventually(have)


async def uids(found: World) -> set[str]:
    pages = found.api.pages(POD, found.namespace)
    return {item["metadata"]["uid"] async for items, _ in pages for item in items}


async def status(found: World) -> dict[str, Any]:
    said: dict[str, Any] = (await found.get(BROKER_NETWORK.name, "net"))["status"]
    return said


@in_loop
async def test_both_ends_are_made_and_nobody_restarts(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found:
        async with found.operator():
            await begin(found, EVERYBODY, "a", "b")
            before = await uids(found)
            await found.ready(BROKER_NETWORK.name, "net")
            assert (await status(found))["bridges"] == {"expected": 2, "connected": 2}
            for name, other in (("a", "b"), ("b", "a")):
                ((connector,),) = connectors(found, name)
                assert f"//{other}-openwire.{namespace}.svc" in connector["uri"]
                keys = (await found.get(SECRET.name, f"{name}-networks"))["data"]
                assert connector["passwordFile"].rpartition("/")[2] in keys
            secret = await found.get(SECRET.name, "net-network")
            assert set(secret["data"]) == {"username", "password"}
            await found.told("BrokerJoined")
            for name in "ab":
                await found.ready("Broker", name)
            versions = await found.versions()
        async with found.operator():
            await asyncio.sleep(SECONDS_AT_REST)
            assert await found.versions() == versions
            await found.delete(BROKER_NETWORK.name, "net")
            await dialled(found, "ab", [0, 0])
            assert await uids(found) == before


@in_loop
async def test_who_leaves_loses_its_bridges_everywhere(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await begin(found, LABELLED, "a", "b", "c")
        await found.ready(BROKER_NETWORK.name, "net")
        assert (await status(found))["bridges"] == {"expected": 6, "connected": 6}
        assert [each["waiting"] for each in (await status(found))["members"]] == [100] * 3
        await label(found, "c", None)
        await dialled(found, "abc", [1, 1, 0])
        await eventually(lambda: found.is_gone(SECRET.name, "c-networks"))
        await found.told("MessagesLeftBehind")
        await found.delete("Broker", "b")
        await dialled(found, "a", [0])

        async def one_is_left() -> bool:
            return [each["name"] for each in (await status(found))["members"]] == ["a"]

        await eventually(one_is_left)


@in_loop
async def test_a_broker_of_another_namespace_has_to_agree(
    control_plane: ControlPlane, namespace: str
) -> None:
    other = f"{namespace}-other"
    control_plane.kubectl("create", "namespace", other)
    named = [{"name": "demo", "namespace": namespace}]
    async with world(control_plane, namespace) as found, found.operator(namespaces=None):
        await found.broker()
        await found.ready("Broker", "demo")
        found.namespace = other
        await found.make(BROKER_NETWORK.name, "net", {"brokers": {"references": named}})

        async def has(reason: str) -> bool:
            return (await found.condition(BROKER_NETWORK.name, "net", "Ready"))[1] == reason

        await eventually(lambda: has("NotAllowed"))
        selector = {"matchLabels": {"team": "blue"}}
        found.namespace = namespace
        await found.broker(allowedNetworks={"namespaces": "Selected", "selector": selector})
        found.namespace = other
        control_plane.kubectl("label", "namespace", other, "team=blue")
        await eventually(lambda: has("TooFewBrokers"))
        # The password lies where the network is, and every member has its own copy.
        assert await found.get(SECRET.name, "net-network")


@in_loop
async def test_a_destination_with_its_own_policy_sends_messages_back_too(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await begin(found, LABELLED, "demo", "b")
        await found.ready(BROKER_NETWORK.name, "net")
        await found.destination(policy={"recorded": True})
        await found.ready("Destination", "orders")

        def held() -> Any:
            policy = found.nodes.brokers["demo"].destinations["Queue", "orders"]["policy"]
            return policy.get("networkBridgeFilter")

        assert held() == {"replayWhenNoConsumers": True}
        await label(found, "demo", None)

        async def is_as_the_resource_says() -> bool:
            return held() is None

        await eventually(is_as_the_resource_says)
        await found.ready("Destination", "orders")
        assert "DestinationDrift" not in await found.events()


@in_loop
async def test_a_secret_of_somebody_else_is_left_alone(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("create", "secret", "generic", "net-network", "-n", namespace)
    async with world(control_plane, namespace) as found, found.operator():
        await begin(found, EVERYBODY, "a", "b")

        async def is_refused() -> bool:
            return await found.condition(BROKER_NETWORK.name, "net", "Stalled") == (
                "True", "Refused",
            )  # fmt: skip

        await eventually(is_refused)
        assert "data" not in await found.get(SECRET.name, "net-network")
