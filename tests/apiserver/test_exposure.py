"""Services of listeners that reach further than the cluster, as the API server takes them."""

from typing import Any

from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world

from lockkeeper_operator.kubernetes.api.kinds import BY_NAME


async def spec(found: World) -> dict[str, Any]:
    """Return that of the Service, nothing while there is none."""
    service = await found.api.read_if_there(BY_NAME["Service"], found.namespace, "demo-openwire")
    found_spec: dict[str, Any] = (service or {}).get("spec", {})
    return found_spec


async def change(found: World, **service: Any) -> None:
    await found.broker(listeners=[{"name": "openwire", "service": service}])


async def comes_to(found: World, **wanted: Any) -> None:
    """Wait until the Service is like this and the Broker ready; None: it has no such field."""

    async def holds() -> bool:
        now = await spec(found)
        return {key: now.get(key) for key in wanted} == wanted

    await eventually(holds, explain=lambda: spec(found))
    await found.ready("Broker", "demo")


@in_loop
async def test_a_service_is_opened_narrowed_and_closed_and_no_pod_restarts(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        uid = (await found.get("Pod", "demo-0"))["metadata"]["uid"]
        networks = ["192.0.2.0/24", "198.51.100.7/32"]
        balancer: dict[str, Any] = {"type": "LoadBalancer", "loadBalancerClass": "example.com/lb"}
        await change(found, **balancer, sourceRanges=networks, externalTrafficPolicy="Local")
        await comes_to(
            found,
            **balancer,
            loadBalancerSourceRanges=networks,
            externalTrafficPolicy="Local",
        )
        before = await found.versions()
        await change(found, **balancer, sourceRanges=networks[:1], externalTrafficPolicy="Cluster")
        await comes_to(
            found, loadBalancerSourceRanges=networks[:1], externalTrafficPolicy="Cluster"
        )
        # Who lets more in is put right.
        widened = '{"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24", "0.0.0.0/0"]}}'
        control_plane.kubectl(
            "patch", "service", "demo-openwire", "-n", namespace, "--type=merge", "-p", widened
        )
        await comes_to(found, loadBalancerSourceRanges=networks[:1])
        await change(found, type="ClusterIP", ipFamilyPolicy="SingleStack", ipFamilies=["IPv4"])
        await comes_to(
            found,
            type="ClusterIP",
            loadBalancerClass=None,
            loadBalancerSourceRanges=None,
            externalTrafficPolicy=None,
            ipFamilies=["IPv4"],
        )
        assert (await found.get("Pod", "demo-0"))["metadata"]["uid"] == uid
        after = await found.versions()
        assert after["StatefulSet", "demo"] == before["StatefulSet", "demo"]


@in_loop
async def test_what_a_service_cannot_become_is_told_in_the_api_servers_words(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await change(found, type="LoadBalancer", loadBalancerClass="example.com/one")
        await comes_to(found, loadBalancerClass="example.com/one")
        await change(found, type="LoadBalancer", loadBalancerClass="example.com/two")

        async def is_told() -> bool:
            conditions = (await found.get("Broker", "demo"))["status"]["conditions"]
            return any(
                each["type"] == "Ready" and "loadBalancerClass" in each["message"]
                for each in conditions
            )

        await eventually(is_told, explain=lambda: found.get("Broker", "demo"))
        assert (await spec(found))["loadBalancerClass"] == "example.com/one"
        await found.delete("Service", "demo-openwire")
        await comes_to(found, loadBalancerClass="example.com/two")
