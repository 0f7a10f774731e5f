"""What others add to children, what they apply, and what the cluster ceases to know."""

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world
from test_operator import until, written_at_rest

from lockkeeper_operator.kubernetes.api.kinds import BY_NAME, POD
from lockkeeper_operator.kubernetes.children.clearing import REMOVALS_MAX

REPAIR_SECONDS = 10.0
SUBJECT = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
WIDE = {"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}
ADDITIONS: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "a label in a selector": (
        "Service", "demo-openwire",
        [{"op": "add", "path": "/spec/selector/team", "value": "blue"}],
    ),
    "an address from outside": (
        "Service", "demo-openwire",
        [{"op": "add", "path": "/spec/externalIPs", "value": ["192.0.2.7"]}],
    ),
    "a rule for everybody": (
        "NetworkPolicy", "demo", [{"op": "add", "path": "/spec/ingress/-", "value": WIDE}],
    ),
    "a rule for whom there was one": (
        "NetworkPolicy", "demo",
        [{"op": "add", "path": "/spec/ingress/1/from/-", "value": {"podSelector": {}}}],
    ),
    "another subject": (
        "RoleBinding", "demo", [{"op": "add", "path": "/subjects/-", "value": SUBJECT}],
    ),
    "a privileged container": (
        "StatefulSet", "demo",
        [
            {"op": "replace", "value": True,
             "path": "/spec/template/spec/containers/0/securityContext/allowPrivilegeEscalation"},
            {"op": "add", "value": True,
             "path": "/spec/template/spec/containers/0/securityContext/privileged"},
        ],
    ),
    "only privileged": (
        "StatefulSet", "demo",
        [{"op": "add", "value": 0,
          "path": "/spec/template/spec/securityContext/runAsGroup"},
         {"op": "add", "value": [4711],
          "path": "/spec/template/spec/securityContext/supplementalGroups"}],
    ),
    "the host's network, and a container beside": (
        "StatefulSet", "demo",
        [
            {"op": "add", "path": "/spec/template/spec/hostNetwork", "value": True},
            {"op": "add", "path": "/spec/template/spec/containers/-",
             "value": {"name": "spy", "image": "example/spy:1"}},
        ],
    ),
    "another file of configuration": (
        "ConfigMap", "demo", [{"op": "add", "path": "/data/more.yaml", "value": "kind: More"}],
    ),
}  # fmt: skip


def essence(child: dict[str, Any]) -> dict[str, Any]:
    return {part: child.get(part) for part in ("spec", "data", "rules", "subjects", "roleRef")}


@in_loop
async def test_what_is_added_where_nothing_may_be_added_is_removed(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        for what, (kind, name, operations) in ADDITIONS.items():
            before = essence(await found.get(kind, name))
            await found.api.revise(BY_NAME[kind], namespace, name, operations)
            assert essence(await found.get(kind, name)) != before, what

            async def repaired(kind: str = kind, name: str = name, old: Any = before) -> bool:
                return bool(essence(await found.get(kind, name)) == old)

            took = await eventually(repaired, REPAIR_SECONDS, partial(found.get, kind, name))
            print(f"{what}: gone in {took:.2f} s")
        assert await written_at_rest(found) == set()


@in_loop
async def test_what_somebody_applies_there_is_left_and_told(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        theirs = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "demo-openwire", "namespace": namespace},
            "spec": {"externalIPs": ["192.0.2.7"]},
        }
        path = BY_NAME["Service"].path(namespace, "demo-openwire")
        query = {"fieldManager": "gitops", "force": "true"}
        await found.api.request("PATCH", path, query, theirs, "application/apply-patch+yaml")
        await until(found, "Ready", "False", "Conflict")
        await until(found, "Stalled", "True", "Conflict")
        conditions = (await found.get("Broker", "demo"))["status"]["conditions"]
        (message,) = [each["message"] for each in conditions if each["type"] == "Ready"]
        assert message == "Service demo-openwire belongs to gitops (.spec.externalIPs)"
        assert (await found.get("Service", "demo-openwire"))["spec"]["externalIPs"] == ["192.0.2.7"]
        assert await written_at_rest(found) == set()


@in_loop
async def test_who_adds_something_again_and_again_is_told_of_and_not_fought_for_ever(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        kind, addresses = BY_NAME["Service"], ["192.0.2.7"]
        removals = 0

        async def add() -> None:
            nonlocal removals
            while True:
                service = await found.get("Service", "demo-openwire")
                if service["spec"].get("externalIPs") != addresses:
                    removals += 1
                    change = {"spec": {"externalIPs": addresses}}
                    await found.api.merge(kind, namespace, "demo-openwire", change)
                await asyncio.sleep(0.05)

        adding = asyncio.create_task(add())
        await until(found, "Ready", "False", "Conflict")
        conditions = (await found.get("Broker", "demo"))["status"]["conditions"]
        (message,) = [each["message"] for each in conditions if each["type"] == "Ready"]
        assert message.endswith("whoever adds .spec.externalIPs again and again")
        assert await written_at_rest(found) == set()
        assert removals <= 1 + REMOVALS_MAX
        adding.cancel()


@in_loop
async def test_a_child_that_somebody_else_holds_keeps_no_roll_out_waiting(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        await until(found, "StandbysReady", "True")
        theirs = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "demo-openwire", "namespace": namespace},
            "spec": {"type": "NodePort"},
        }
        path = BY_NAME["Service"].path(namespace, "demo-openwire")
        query = {"fieldManager": "gitops", "force": "true"}
        await found.api.request("PATCH", path, query, theirs, "application/apply-patch+yaml")
        await until(found, "Ready", "False", "Conflict")
        uids = await pods_of(found)
        await found.broker(replicas=2, image={"name": "example/lockkeeper:2"})

        async def rolled() -> bool:
            now = await pods_of(found)
            return len(now) == len(uids) and not now & uids

        await eventually(rolled, 30, lambda: found.get("Broker", "demo"))
        await until(found, "Upgrading", "False")
        assert (await found.condition("Broker", "demo"))[1] == "Conflict"
        assert (await found.get("Service", "demo-openwire"))["spec"]["type"] == "NodePort"


async def pods_of(found: World) -> set[str]:
    """Return the uids of all pods."""
    pages = found.api.pages(POD, found.namespace)
    return {item["metadata"]["uid"] async for items, _ in pages for item in items}


def definition(kind: str, plural: str, group: str = "monitoring.coreos.com") -> dict[str, Any]:
    """Return a definition such as another operator brings, as far as it matters here."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


OWN_WORDS = {
    "tolerations": [{"key": "brokers", "operator": "Equal", "value": "", "effect": "NoSchedule"}],
    "templatePatch": {
        "spec": {
            "hostNetwork": False,
            "containers": [{"name": "broker", "env": [{"name": "PROXY", "value": ""}]}],
            "volumes": [{"name": "temporary", "emptyDir": {"sizeLimit": "1024Mi"}}],
        }
    },
}
"""The API server leaves out what is false or empty, and writes 1Gi."""


@in_loop
async def test_what_the_api_server_writes_its_own_way_is_no_drift_and_keeps_nothing_back(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found:
        async with found.operator():
            await found.broker(replicas=2, pods=OWN_WORDS)
            await found.ready("Broker", "demo")
            await until(found, "StandbysReady", "True")
            uids = await pods_of(found)

            async def rolled() -> bool:
                now = await pods_of(found)
                return len(now) == 2 and not now & uids

            await found.broker(replicas=2, pods={**OWN_WORDS, "annotations": {"team": "blue"}})
            await eventually(rolled)
            await until(found, "Upgrading", "False")
        async with found.operator():
            # A new process knows no answers yet, and goes on with what the last one left.
            await until(found, "StandbysReady", "True")
            uids = await pods_of(found)
            await found.broker(replicas=2, pods={**OWN_WORDS, "annotations": {"team": "red"}})
            await eventually(rolled)
            assert "DriftRepaired" not in await found.events()
            template = "/spec/template/spec"
            operations = [{"op": "add", "path": f"{template}/hostNetwork", "value": True}]
            await found.api.revise(BY_NAME["StatefulSet"], namespace, "demo", operations)

            async def repaired() -> bool:
                spec = (await found.get("StatefulSet", "demo"))["spec"]["template"]["spec"]
                return "hostNetwork" not in spec

            await eventually(repaired, REPAIR_SECONDS)
            assert await written_at_rest(found) == set()


@pytest.mark.parametrize("everywhere", [True, False])
def test_monitors_come_and_go_with_their_definitions_and_nothing_waits_for_them(
    control_plane: ControlPlane, namespace: str, everywhere: bool
) -> None:
    text = json.dumps(definition("PodMonitor", "podmonitors"))
    kind = BY_NAME["PodMonitor"]

    @in_loop
    async def main() -> None:
        namespaces = None if everywhere else (namespace,)
        async with world(control_plane, namespace) as found:
            control_plane.kubectl("apply", "-f", "-", text=text)
            name = "podmonitors.monitoring.coreos.com"
            control_plane.kubectl("wait", "--for=condition=Established", "crd", name)
            async with found.operator(namespaces=namespaces, resync=5.0):
                await found.broker()
                await found.ready("Broker", "demo")
                await eventually(lambda: has_monitor(found, "demo"))
                control_plane.kubectl("delete", "crd", name)
                # A Broker that is made now needs nothing that is gone.
                await found.broker("second")
                await found.ready("Broker", "second", 40)
                control_plane.kubectl("apply", "-f", "-", text=text)
                control_plane.kubectl("wait", "--for=condition=Established", "crd", name)
                await eventually(lambda: has_monitor(found, "second"), 40)
                await eventually(lambda: has_monitor(found, "demo"), 40)
                monitor = await found.get("PodMonitor", "demo")
                await found.api.merge(kind, namespace, "demo", {"spec": {"selector": None}})

                async def repaired() -> bool:
                    return bool((await found.get("PodMonitor", "demo"))["spec"] == monitor["spec"])

                if everywhere:
                    await eventually(repaired)
        control_plane.kubectl("delete", "crd", name)

    main()


async def has_monitor(found: World, name: str) -> bool:
    return not await found.is_gone("PodMonitor", name)


@in_loop
async def test_a_server_that_keeps_saying_no_is_told_of_in_the_status(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        # The server fails at whatever is written to one kind: a webhook that nobody answers.
        hook = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [
                {
                    "name": "nobody.example.com",
                    "clientConfig": {"url": "https://127.0.0.1:1/"},
                    "rules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["*"],
                            "resources": ["configmaps"],
                        }
                    ],
                    "namespaceSelector": {
                        "matchLabels": {"kubernetes.io/metadata.name": namespace}
                    },
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        }
        control_plane.kubectl("apply", "-f", "-", text=json.dumps(hook))
        try:
            await asyncio.sleep(2)
            await found.broker(destinationPolicies=[{"match": "A.>", "recorded": True}])
            await until(found, "Ready", "False", "Failed")
            await until(found, "Stalled", "True", "Failed")
            status = (await found.get("Broker", "demo"))["status"]
            (message,) = [
                each["message"] for each in status["conditions"] if each["type"] == "Ready"
            ]
            assert "nobody.example.com" in message
            assert status["observedGeneration"] == 2
        finally:
            control_plane.kubectl("delete", "validatingwebhookconfiguration", namespace)
        await found.ready("Broker", "demo", 60)
        assert await found.condition("Broker", "demo", "Stalled") == ("False", "GettingOn")


@in_loop
async def test_pods_stay_while_their_claim_is_being_deleted_and_the_status_says_so(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        uids = await pods_of(found)
        # Kubernetes keeps it as long as pods use it.
        await found.delete("PersistentVolumeClaim", "demo-journal")
        await until(found, "StorageBound", "False", "ClaimEnds")
        await until(found, "Ready", "False", "ClaimEnds")
        await until(found, "Stalled", "True", "ClaimEnds")
        await found.broker(replicas=2, hibernated=True, pods={"annotations": {"team": "blue"}})

        async def told() -> bool:
            broker = await found.get("Broker", "demo")
            return bool(broker["status"]["observedGeneration"] == 2)

        await eventually(told)
        assert (await found.get("StatefulSet", "demo"))["spec"]["replicas"] == 2
        assert await pods_of(found) == uids
        assert await written_at_rest(found) == set()
        await found.told("ClaimEnds")
        # Gone at last, it is made anew, and what is wanted is done.
        claim = BY_NAME["PersistentVolumeClaim"]
        await found.api.merge(claim, namespace, "demo-journal", {"metadata": {"finalizers": None}})
        await until(found, "StorageBound", "True")
        assert await found.condition("Broker", "demo") == ("False", "Hibernated")
