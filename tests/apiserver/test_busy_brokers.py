"""Brokers that do not take what the operator tells them, for a while."""

import asyncio

from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world
from simulated_brokers import SimulatedPod
from test_operator import until

from lockkeeper_api.pod_names import FENCED_ANNOTATION
from lockkeeper_operator.kubernetes.api.kinds import BROKER

SETTLED_SECONDS = 3.0
"""After so long nothing but time makes the operator look again."""
AGAIN_SECONDS = 10.0
CONFIGURING, FENCING = "POST /api/v1/configuration", "POST /api/v1/fence"


def be_busy(found: World, name: str) -> SimulatedPod:
    """Let the process in a pod take nothing from now on, and return it."""
    pod = found.nodes.pod(name)
    pod.busy = True
    pod.broker.calls.clear()
    return pod


async def told_in_vain(pod: SimulatedPod, call: str) -> None:
    """Wait until a process was told something, and nothing follows from that any more."""

    async def was_told() -> bool:
        return call in pod.broker.calls

    await eventually(was_told)
    await asyncio.sleep(SETTLED_SECONDS)


@in_loop
async def test_a_configuration_that_a_broker_did_not_take_is_soon_pushed_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        await until(found, "ConfigurationApplied", "True")
        pod = be_busy(found, "demo-0")
        before = pod.text
        await found.broker(destinationPolicies=[{"match": "A.>", "recorded": True}])
        await told_in_vain(pod, CONFIGURING)
        await until(found, "ConfigurationApplied", "False", "Pending")
        assert "ConfigurationPushed" not in await found.events()
        assert pod.text == before
        pod.busy = False

        async def is_applied() -> bool:
            return await found.condition("Broker", "demo", "ConfigurationApplied") == (
                "True", "Applied",
            )  # fmt: skip

        print(f"{await eventually(is_applied, AGAIN_SECONDS):.1f} s")
        assert pod.text != before
        await found.told("ConfigurationPushed")


@in_loop
async def test_a_pod_that_could_not_be_fenced_is_soon_told_again_and_nobody_believes_it_before(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        for fenced, event in ((True, "Fenced"), (False, "Unfenced")):
            pod = be_busy(found, "demo-1")
            notes = {FENCED_ANNOTATION: "demo-1" if fenced else None}
            change = {"metadata": {"annotations": notes}}
            await found.api.merge(BROKER, namespace, "demo", change)
            await told_in_vain(pod, FENCING)
            assert pod.fenced is not fenced
            assert event not in await found.events()
            pod.busy = False

            async def is_so(pod: SimulatedPod = pod, fenced: bool = fenced) -> bool:
                return pod.fenced is fenced

            print(f"{await eventually(is_so, AGAIN_SECONDS):.1f} s")
            await found.told(event)
