"""Destinations: made, kept, purged, and gone again, in whatever order things go."""

import asyncio
from pathlib import Path

import pytest
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world
from test_faults import faulty

from lockkeeper_api.destination import PURGE_ANNOTATION
from lockkeeper_operator.destinations.releasing import release_all
from lockkeeper_operator.kubernetes.api.kinds import BROKER, DESTINATION
from lockkeeper_operator.kubernetes.api.server import connect

DRIFT_SECONDS = 5.0
GONE_SECONDS = 30.0
KEY = ("Queue", "orders")
POLICIES = ("Retain", "DeleteIfEmpty", "Delete")


async def begin(found: World, policy: str = "Retain") -> None:
    await found.broker()
    await found.ready("Broker", "demo")
    await found.destination(deletionPolicy=policy)
    await found.ready("Destination", "orders")


def there(found: World) -> bool:
    return KEY in found.nodes.brokers["demo"].destinations


async def gone(found: World, name: str = "orders", within: float = GONE_SECONDS) -> float:
    return await eventually(
        lambda: found.is_gone("Destination", name),
        within,
        lambda: found.get("Destination", name),
    )


@in_loop
async def test_drift_on_the_broker_is_repaired(control_plane: ControlPlane, namespace: str) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await begin(found)
        broker = found.nodes.brokers["demo"]

        async def is_back() -> bool:
            held = broker.destinations.get(KEY)
            return held is not None and (held["policy"], held["owner"]) == (
                None, f"{namespace}/orders",
            )  # fmt: skip

        del broker.destinations[KEY]
        print(f"removed behind its back: back in {await eventually(is_back, DRIFT_SECONDS):.2f} s")
        broker.destinations[KEY]["policy"] = {"recorded": True}
        print(f"other policy: back in {await eventually(is_back, DRIFT_SECONDS):.2f} s")
        broker.destinations.clear()
        await found.delete("Pod", "demo-0")
        print(f"restarted empty: back in {await eventually(is_back, DRIFT_SECONDS):.2f} s")

        async def told() -> bool:
            return "DestinationDrift" in await found.events()

        await eventually(told)
        await found.ready("Destination", "orders")


@in_loop
async def test_a_policy_follows_the_resource(control_plane: ControlPlane, namespace: str) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await begin(found)
        await found.destination(policy={"recorded": True, "memoryLimit": "1Mi"})
        await found.ready("Destination", "orders")
        held = found.nodes.brokers["demo"].destinations[KEY]["policy"]
        assert held["recorded"] is True
        assert "DestinationDrift" not in await found.events()


@in_loop
async def test_figures_reach_the_status(control_plane: ControlPlane, namespace: str) -> None:
    async with world(control_plane, namespace) as found:
        async with found.operator():
            await begin(found)
        found.nodes.brokers["demo"].send(*KEY, 3)
        async with found.operator():

            async def counted() -> bool:
                return bool((await found.get("Destination", "orders"))["status"]["depth"] == 3)

            await eventually(counted)
        status = (await found.get("Destination", "orders"))["status"]
        assert (status["enqueued"], status["consumers"]) == (3, 0)
        assert status["oldestMessageAge"] == "0s"


@in_loop
async def test_lag_of_groups_reaches_the_status(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found:
        async with found.operator():
            await found.broker()
            await found.ready("Broker", "demo")
            await found.destination(kind="Stream", stream={"partitions": 2})
            await found.ready("Destination", "orders")
        group = {"name": "billing", "members": 2, "lagMessages": 4711, "lagTime": 90_000}
        idle = {"name": "audit", "members": 0, "lagMessages": 0, "lagTime": 0}
        found.nodes.brokers["demo"].destinations["Stream", "orders"] |= {
            "partitions": [{}, {}], "bytes": 5_000_000, "groups": [group, idle],
        }  # fmt: skip
        async with found.operator():

            async def told() -> bool:
                status = (await found.get("Destination", "orders"))["status"]
                return "lagMessages" in status["stream"]

            await eventually(told)
        assert (await found.get("Destination", "orders"))["status"]["stream"] == {
            "partitions": 2,
            "bytes": 5_000_000,
            "lagMessages": 1000,
            "groups": [
                {"name": "audit", "members": 0, "lagMessages": 0},
                {"name": "billing", "members": 2, "lagMessages": 1000, "lagTime": "1m"},
            ],
        }


@pytest.mark.parametrize(
    ("value", "left", "event"), [("orders", 0, "Purged"), ("yes", 3, "PurgeUnconfirmed")]
)
def test_a_purge_needs_the_destinations_name(
    control_plane: ControlPlane, namespace: str, value: str, left: int, event: str
) -> None:
    @in_loop
    async def main() -> None:
        async with world(control_plane, namespace) as found, found.operator():
            await begin(found)
            found.nodes.brokers["demo"].send(*KEY, 3)
            change = {"metadata": {"annotations": {PURGE_ANNOTATION: value}}}
            await found.api.merge(DESTINATION, namespace, "orders", change)

            async def told() -> bool:
                return event in await found.events()

            await eventually(told)
            metadata = (await found.get("Destination", "orders"))["metadata"]
            assert PURGE_ANNOTATION not in metadata.get("annotations", {})
            assert found.nodes.brokers["demo"].destinations[KEY]["depth"] == left
            calls = [each for each in found.nodes.brokers["demo"].calls if "purge" in each]
            assert len(calls) == (event == "Purged")

    main()


@in_loop
async def test_one_destination_has_one_resource_and_strangers_are_not_adopted_unasked(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await begin(found)
        await asyncio.sleep(1.1)  # Who is older is told by seconds.
        await found.destination("second", name="orders")

        async def accepted(name: str) -> tuple[str, str]:
            return await found.condition("Destination", name, "Accepted")

        async def is_taken() -> bool:
            return await accepted("second") == ("False", "NameTaken")

        await eventually(is_taken)
        found.nodes.brokers["demo"].send("Queue", "theirs")
        await found.destination("theirs", adoption="Refused")

        async def is_there() -> bool:
            return await accepted("theirs") == ("False", "AlreadyThere")

        await eventually(is_there)
        await found.delete("Destination", "theirs")
        await gone(found, "theirs")
        await found.destination("theirs")
        await found.ready("Destination", "theirs")
        owner = found.nodes.brokers["demo"].destinations["Queue", "theirs"]["owner"]
        assert owner == f"{namespace}/theirs"
        # The next in line takes over when the first is gone.
        await found.delete("Destination", "orders")
        await found.ready("Destination", "second")


@in_loop
async def test_another_namespace_needs_the_brokers_leave(
    control_plane: ControlPlane, namespace: str
) -> None:
    other = f"{namespace}-other"
    control_plane.kubectl("create", "namespace", other)
    reference = {"name": "demo", "namespace": namespace}
    async with world(control_plane, namespace) as found, found.operator(namespaces=None):
        await found.broker()
        await found.ready("Broker", "demo")
        found.namespace = other
        await found.destination(brokerRef=reference)

        async def is_refused() -> bool:
            has = await found.condition("Destination", "orders", "Accepted")
            return has == ("False", "NotAllowed")

        await eventually(is_refused)
        found.namespace = namespace
        selector = {"matchLabels": {"team": "blue"}}
        allowed = {"namespaces": "Selected", "selector": selector}
        await found.broker(allowedDestinations=allowed)
        await found.ready("Broker", "demo")
        found.namespace = other
        assert await is_refused()
        control_plane.kubectl("label", "namespace", other, "team=blue")
        await found.ready("Destination", "orders")


@in_loop
async def test_who_is_not_let_in_keeps_nobody_out(
    control_plane: ControlPlane, namespace: str
) -> None:
    other = f"{namespace}-other"
    control_plane.kubectl("create", "namespace", other)
    async with world(control_plane, namespace) as found, found.operator(namespaces=None):
        allowed = {"namespaces": "Selected", "selector": {"matchLabels": {"team": "blue"}}}
        await found.broker(allowedDestinations=allowed)
        await found.ready("Broker", "demo")

        async def has(where: str, status: str, reason: str) -> bool:
            found.namespace = where
            return await found.condition("Destination", "orders", "Accepted") == (status, reason)

        found.namespace = other
        await found.destination(brokerRef={"name": "demo", "namespace": namespace})
        await eventually(lambda: has(other, "False", "NotAllowed"))
        await asyncio.sleep(1.1)  # Who is older is told by seconds.
        found.namespace = namespace
        await found.destination()
        await found.ready("Destination", "orders")
        control_plane.kubectl("label", "namespace", other, "team=blue")
        await eventually(lambda: has(other, "True", "Accepted"))
        await eventually(lambda: has(namespace, "False", "NameTaken"))
        control_plane.kubectl("label", "namespace", other, "team-")
        await eventually(lambda: has(other, "False", "NotAllowed"))
        await eventually(lambda: has(namespace, "True", "Accepted"))
        await found.ready("Destination", "orders")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("depth", [0, 2])
def test_a_deletion_does_what_the_policy_says(
    control_plane: ControlPlane, namespace: str, policy: str, depth: int
) -> None:
    @in_loop
    async def main() -> None:
        async with world(control_plane, namespace) as found, found.operator():
            await begin(found, policy)
            if depth:
                found.nodes.brokers["demo"].send(*KEY, depth)
            await found.delete("Destination", "orders")
            await gone(found)
            stays = policy == "Retain" or (policy == "DeleteIfEmpty" and depth > 0)
            assert there(found) == stays

    main()


async def broker_first(found: World) -> None:
    await found.delete("Broker", "demo")
    await eventually(lambda: found.is_gone("Broker", "demo"))
    await found.delete("Destination", "orders")


async def destination_first(found: World) -> None:
    await found.delete("Destination", "orders")
    await found.delete("Broker", "demo")


async def namespace_ends(found: World) -> None:
    """Play the namespace's controller: it deletes all there is, in no order, and then again."""
    found.nodes.paused = True
    found.control_plane.kubectl("delete", "namespace", found.namespace, "--wait=false")
    for kind in (DESTINATION, BROKER):
        await found.api.request("DELETE", kind.path(found.namespace))


async def broker_unreachable(found: World) -> None:
    found.nodes.pod("demo-0").silent = True
    await found.delete("Destination", "orders")


async def hibernated(found: World) -> None:
    await found.broker(hibernated=True)
    await eventually(lambda: found.is_gone("Pod", "demo-0"))
    await found.delete("Destination", "orders")


WAYS = (broker_first, destination_first, namespace_ends, broker_unreachable, hibernated)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_resource_is_never_stuck(
    control_plane: ControlPlane, namespace: str, policy: str, way: object
) -> None:
    @in_loop
    async def main() -> None:
        async with world(control_plane, namespace) as found, found.operator():
            await begin(found, policy)
            assert callable(way)
            await way(found)
            print(f"gone after {await gone(found):.1f} s")

    main()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("broker_goes", [False, True])
def test_what_was_deleted_while_the_operator_was_down_goes_when_it_is_back(
    control_plane: ControlPlane, namespace: str, policy: str, broker_goes: bool
) -> None:
    @in_loop
    async def main() -> None:
        async with world(control_plane, namespace) as found:
            async with found.operator():
                await begin(found, policy)
            await found.delete("Destination", "orders")
            if broker_goes:
                await found.delete("Broker", "demo")
            assert await found.is_gone("Destination", "orders") == (policy == "Retain")
            async with found.operator():
                await gone(found)
            assert there(found) == (policy == "Retain" or broker_goes)

    main()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_resource_that_no_longer_validates_can_be_deleted(
    control_plane: ControlPlane, namespace: str, policy: str
) -> None:
    @in_loop
    async def main() -> None:
        async with world(control_plane, namespace) as found, found.operator():
            await begin(found, policy)
            # Half a byte, which no rule of the definition sees.
            await found.destination(deletionPolicy=policy, policy={"memoryLimit": "100000.5"})

            async def is_refused() -> bool:
                return "whole number" in repr((await found.get("Destination", "orders"))["status"])

            await eventually(is_refused)
            await found.delete("Destination", "orders")
            await gone(found)
            assert there(found) == (policy == "Retain")

    main()


@in_loop
async def test_a_resource_whose_broker_was_never_asked_can_be_deleted(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with world(control_plane, namespace) as found, faulty(found, tmp_path) as proxy:
        secret = ("create", "secret", "generic", "theirs", "--from-literal=password=hush")
        control_plane.kubectl(*secret, "-n", namespace)
        async with found.operator():
            await found.broker(access={"users": [{"name": "jfk", "secretName": "theirs"}]})
            await found.ready("Broker", "demo")
            await found.destination(deletionPolicy="Delete")
            await found.ready("Destination", "orders")
        # The Broker is looked at no further than to its users.
        proxy.busy = lambda _verb, path: path.endswith("/secrets/theirs")
        async with found.operator(tmp_path / "proxy"):
            await found.delete("Destination", "orders")
            print(f"gone after {await gone(found, within=2 * GONE_SECONDS):.1f} s")


@in_loop
async def test_an_operator_of_some_namespaces_knows_their_labels(
    control_plane: ControlPlane, namespace: str
) -> None:
    other = f"{namespace}-other"
    control_plane.kubectl("create", "namespace", other)
    control_plane.kubectl("label", "namespace", other, "team=blue")
    reference = {"name": "demo", "namespace": namespace}
    allowed = {"namespaces": "Selected", "selector": {"matchLabels": {"team": "blue"}}}
    namespaces = (namespace, other)
    async with world(control_plane, namespace) as found, found.operator(namespaces=namespaces):
        await found.broker(allowedDestinations=allowed)
        await found.ready("Broker", "demo")
        found.namespace = other
        await found.destination(brokerRef=reference)
        await found.ready("Destination", "orders")
        control_plane.kubectl("label", "namespace", other, "team-")

        async def is_refused() -> bool:
            has = await found.condition("Destination", "orders", "Accepted")
            return has == ("False", "NotAllowed")

        await eventually(is_refused, GONE_SECONDS)
        found.namespace = namespace


@in_loop
async def test_an_operator_that_is_uninstalled_leaves_nothing_stuck(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found:
        async with found.operator():
            await begin(found, "Delete")
        api = await connect(str(control_plane.kubeconfig))
        assert await release_all(api, [namespace]) == 1
        await api.close()
        await found.delete("Destination", "orders")
        assert await found.is_gone("Destination", "orders")
