"""The operator, from resources to children, and back from brokers to statuses."""

import asyncio

from control_plane import ControlPlane
from world import eventually, in_loop, world


@in_loop
async def test_a_broker_becomes_ready_and_nothing_is_written_at_rest(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.destination(policy={"prioritizedMessages": True})
        await found.ready("Broker", "demo")
        await found.ready("Destination", "orders")
        broker = await found.get("Broker", "demo")
        assert broker["status"]["master"] == "demo-0"
        await eventually(lambda: _is(found.condition("Broker", "demo", "StandbysReady"), "True"))
        await eventually(
            lambda: _is(found.condition("Broker", "demo", "ConfigurationApplied"), "True")
        )
        assert found.nodes.brokers["demo"].destinations["Queue", "orders"]["policy"] == {
            "prioritizedMessages": True
        }
        await asyncio.sleep(2)
        before = await found.versions()
        await asyncio.sleep(12)
        assert await found.versions() == before


async def _is(condition, status):
    return (await condition)[0] == status
