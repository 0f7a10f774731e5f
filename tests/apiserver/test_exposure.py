"""Services of listeners that reach further than the cluster, as the API server takes them."""

import asyncio
from typing import Any

import pytest
from control_plane import ControlPlane
from published import published
from simulated import World, eventually, in_loop, world

from lockkeeper_operator.kubernetes.api.errors import ApiError
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


@in_loop
async def test_routes_and_services_of_pods_come_and_go_with_the_spec(
    control_plane: ControlPlane, namespace: str
) -> None:
    listener = {
        "name": "openwire",
        "tls": {"secretName": "mq-tls"},
        "advertisedUrls": ["ssl://mq-0.example.org:443"],
        "service": {"perPod": True},
        "route": {"host": "mq.example.org", "ingressClassName": "nginx"},
    }
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(listeners=[listener])
        await found.ready("Broker", "demo")
        ingress = await found.get("Ingress", "demo-openwire")
        assert [each["host"] for each in ingress["spec"]["rules"]] == ["mq.example.org"]
        assert (await found.get("Ingress", "demo-openwire-0"))["spec"]["tls"] == [
            {"hosts": ["mq-0.example.org"]}
        ]
        selector = (await found.get("Service", "demo-openwire-0"))["spec"]["selector"]
        assert selector["statefulset.kubernetes.io/pod-name"] == "demo-0"
        # Who leads another host in is put right.
        other = {"host": "other.example.org", "http": ingress["spec"]["rules"][0]["http"]}
        added = {"spec": {"rules": [*ingress["spec"]["rules"], other]}}
        await found.api.merge(BY_NAME["Ingress"], namespace, "demo-openwire", added)

        async def is_right() -> bool:
            rules = (await found.get("Ingress", "demo-openwire"))["spec"]["rules"]
            return bool(rules == ingress["spec"]["rules"])

        await eventually(is_right)
        gateway = {"host": "mq.example.org", "gateway": {"name": "outside"}}
        await found.broker(listeners=[{**listener, "service": {}, "route": gateway}])

        async def is_told() -> bool:
            return await found.condition("Broker", "demo", "Exposed") == ("False", "KindMissing")

        await eventually(is_told)
        for kind, name in (("Ingress", "demo-openwire"), ("Service", "demo-openwire-0")):
            assert await found.is_gone(kind, name)


@in_loop
async def test_a_tls_route_is_made_as_soon_as_the_cluster_knows_the_gateway_api(
    control_plane: ControlPlane, namespace: str
) -> None:
    tls_routes = published("tlsroutes")
    listener = {
        "name": "openwire",
        "tls": {"secretName": "mq-tls"},
        "route": {"host": "mq.example.org", "gateway": {"name": "outside"}},
    }
    async with world(control_plane, namespace) as found, found.operator(namespaces=None):
        await found.broker(listeners=[listener])

        async def says(status: str) -> bool:
            return (await found.condition("Broker", "demo", "Exposed"))[0] == status

        await eventually(lambda: says("False"))
        # The brokers serve all the same.
        await found.ready("Broker", "demo")
        control_plane.kubectl("apply", "-f", str(tls_routes))
        try:
            await eventually(lambda: says("True"), 40)

            async def is_there() -> bool:
                return not await found.is_gone("TLSRoute", "demo-openwire")

            await eventually(is_there, 40)
            route = await found.get("TLSRoute", "demo-openwire")
            # What we said, and what the API server adds.
            gateway = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "outside"}
            service = {"group": "", "kind": "Service", "name": "demo-openwire", "port": 61616}
            assert route["spec"] == {
                "parentRefs": [gateway],
                "hostnames": ["mq.example.org"],
                "rules": [{"backendRefs": [{**service, "weight": 1}]}],
            }
            # Nobody writes it again because of what was added.
            await asyncio.sleep(3)
            assert await found.get("TLSRoute", "demo-openwire") == route
        finally:
            control_plane.kubectl("delete", "-f", str(tls_routes))


@pytest.mark.parametrize(
    ("listener", "reason"),
    [
        ({"route": {"host": "mq.example.org", "ingressClassName": "nginx"}}, "route needs tls"),
        ({"tls": {"secretName": "s"}, "route": {"host": "mq.example.org"}}, "exactly one of"),
        ({"tls": {"secretName": "s"}, "route": {"host": "MQ", "gateway": {"name": "g"}}}, "host"),
    ],
)
@in_loop
async def test_a_route_that_makes_no_sense_is_refused(
    control_plane: ControlPlane, namespace: str, listener: dict[str, Any], reason: str
) -> None:
    async with world(control_plane, namespace) as found:
        with pytest.raises(ApiError) as refused:
            await found.broker(listeners=[{"name": "openwire", **listener}])
        assert reason in refused.value.message
