"""The operator, from resources to children, and back from brokers to statuses."""

import asyncio
import base64
from typing import Any

import pytest
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world

from lockkeeper_api.passwords import matches
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME, SECRET

SECONDS_AT_REST = 12.0
"""Longer than every period in which brokers are asked."""
DRIFT_SECONDS = 5.0
REFUSALS = 6
"""So many attempts take longer than a failure that is told."""


async def until(found: World, condition: str, status: str, reason: str = "") -> None:
    async def holds() -> bool:
        has = await found.condition("Broker", "demo", condition)
        return has[0] == status and reason in ("", has[1])

    await eventually(holds, explain=lambda: found.get("Broker", "demo"))


async def written_at_rest(found: World) -> set[tuple[str, str]]:
    """Return which objects are written while nothing happens."""
    await asyncio.sleep(2)
    before = await found.versions()
    await asyncio.sleep(SECONDS_AT_REST)
    after = await found.versions()
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def secret_value(secret: dict[str, object], key: str) -> str:
    data = secret["data"]
    assert isinstance(data, dict)
    return base64.b64decode(data[key]).decode()


@in_loop
async def test_a_pair_becomes_ready_and_nothing_is_written_at_rest(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found:
        async with found.operator():
            await found.broker(replicas=2)
            await found.destination(policy={"prioritizedMessages": True})
            await found.ready("Broker", "demo")
            await found.ready("Destination", "orders")
            assert (await found.get("Broker", "demo"))["status"]["master"] == "demo-0"
            await until(found, "StandbysReady", "True", "Proven")
            await until(found, "ConfigurationApplied", "True")
            policy = found.nodes.brokers["demo"].destinations["Queue", "orders"]["policy"]
            assert policy == {"prioritizedMessages": True}
            assert await written_at_rest(found) == set()
        # A new process finds everything as it is to be, made-up passwords and hashes included.
        async with found.operator():
            assert await written_at_rest(found) == set()
            secrets = {
                name: await found.get("Secret", f"demo-{name}")
                for name in ("users", "user-client", "client", "admin")
            }
        password = secret_value(secrets["user-client"], "password")
        assert secret_value(secrets["client"], "password") == password
        name, _, hash = secret_value(secrets["users"], "users").strip().partition(":")
        assert name == "client"
        assert matches(password, hash)


@in_loop
async def test_the_password_of_a_secret_of_somebody_else_is_hashed_for_the_pods(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        control_plane.kubectl(
            "create", "secret", "generic", "theirs", "-n", namespace, "--from-literal=password=hush"
        )
        await found.broker(access={"users": [{"name": "jfk", "secretName": "theirs"}]})
        await found.ready("Broker", "demo")
        line = secret_value(await found.get("Secret", "demo-users"), "users").strip()
        assert line.startswith("jfk:")
        assert matches("hush", line.removeprefix("jfk:"))


@in_loop
async def test_drift_of_children_is_repaired(control_plane: ControlPlane, namespace: str) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        for kind, name, change in (
            ("Service", "demo-openwire", '{"spec":{"selector":{"lockkeeper.dev/role":"any"}}}'),
            ("ConfigMap", "demo", '{"data":{"broker.yaml":"kind: Nonsense"}}'),
            ("Role", "demo", '{"rules":[]}'),
            ("StatefulSet", "demo", '{"spec":{"replicas":7}}'),
            ("Secret", "demo-users", '{"data":{"users":null}}'),
            ("Service", "demo-replicas", '{"metadata":{"labels":null}}'),
        ):
            before = await found.get(kind, name)
            control_plane.kubectl(
                "patch", kind, name, "-n", namespace, "--type=merge", "-p", change
            )

            async def repaired(kind: str = kind, name: str = name, old: Any = before) -> bool:
                new = await found.get(kind, name)
                same = all(new.get(part) == old.get(part) for part in ("spec", "data", "rules"))
                return same and new["metadata"].get("labels") == old["metadata"].get("labels")

            took = await eventually(repaired, DRIFT_SECONDS)
            print(f"{kind} {name}: repaired in {took:.2f} s")
        for kind, name in (
            ("Service", "demo-openwire"),
            ("Secret", "demo-users"),
        ):
            uid = (await found.get(kind, name))["metadata"]["uid"]
            await found.delete(kind, name)

            async def is_back(kind: str = kind, name: str = name, uid: str = uid) -> bool:
                new = await found.api.read_if_there(BY_NAME[kind], namespace, name)
                return new is not None and new["metadata"]["uid"] != uid

            await eventually(is_back, DRIFT_SECONDS)
        await found.told("DriftRepaired")
        # Nobody watches Leases, which change every second: the next look at the Broker sees it.
        uid = (await found.get("Lease", "demo"))["metadata"]["uid"]
        await found.delete("Lease", "demo")
        await found.broker(replicas=2, disruptionBudget={"enabled": False})
        await eventually(lambda: is_back("Lease", "demo", uid), DRIFT_SECONDS)


@in_loop
async def test_a_password_whose_secret_is_deleted_is_made_anew_whoever_remembers_it(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found:

        async def password() -> str:
            """Return that of the user's Secret, once the users' hashes are of it."""

            async def there() -> bool:
                if await found.is_gone("Secret", "demo-user-client"):
                    return False
                made = secret_value(await found.get("Secret", "demo-user-client"), "password")
                line = secret_value(await found.get("Secret", "demo-users"), "users").strip()
                return matches(made, line.removeprefix("client:"))

            await eventually(there)
            return secret_value(await found.get("Secret", "demo-user-client"), "password")

        async with found.operator():
            await found.broker()
            await found.ready("Broker", "demo")
            passwords = [await password()]
            await found.delete("Secret", "demo-user-client")
            passwords.append(await password())
        await found.delete("Secret", "demo-user-client")
        async with found.operator():
            passwords.append(await password())
            assert await written_at_rest(found) == set()
        assert len(set(passwords)) == 3


@in_loop
async def test_what_others_own_is_left_alone(control_plane: ControlPlane, namespace: str) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        # More than is wanted is nobody's business but theirs.
        service = await found.get("Service", "demo-openwire")
        extra = {"metadata": {"annotations": {"mesh": "on"}, "labels": {"team": "blue"}}}
        await found.api.merge(BY_NAME["Service"], namespace, "demo-openwire", extra)
        # A field that somebody else applies is theirs, and told of.
        taken = {
            **{key: service[key] for key in ("apiVersion", "kind")},
            "metadata": {"name": "demo-openwire", "namespace": namespace},
            "spec": {"type": "NodePort"},
        }
        path = BY_NAME["Service"].path(namespace, "demo-openwire")
        query = {"fieldManager": "gitops", "force": "true"}
        await found.api.request("PATCH", path, query, taken, "application/apply-patch+yaml")
        await until(found, "Ready", "False", "Conflict")
        assert await written_at_rest(found) == set()
        service = await found.get("Service", "demo-openwire")
        assert service["spec"]["type"] == "NodePort"
        assert service["metadata"]["annotations"]["mesh"] == "on"
        conditions = (await found.get("Broker", "demo"))["status"]["conditions"]
        (message,) = [each["message"] for each in conditions if each["type"] == "Ready"]
        assert "gitops (.spec.type)" in message
        # Given back, it is brought to what it is to be.
        del taken["spec"]
        await found.api.request("PATCH", path, query, taken, "application/apply-patch+yaml")
        await found.ready("Broker", "demo")
        assert (await found.get("Service", "demo-openwire"))["spec"]["type"] == "ClusterIP"


@in_loop
async def test_a_child_of_that_name_that_is_somebody_elses_is_not_taken_over(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        control_plane.kubectl(
            "create", "secret", "generic", "demo-client", "-n", namespace, "--from-literal=a=b"
        )
        await found.broker()
        await until(found, "Ready", "False", "Conflict")
        assert (await found.api.read(SECRET, namespace, "demo-client"))["data"] == {"a": "Yg=="}
        await found.delete("Secret", "demo-client")
        # Nothing tells of a Secret that was never ours; the next look does.
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")


@in_loop
async def test_what_the_api_server_refuses_is_told(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(resources={"limits": {"memory": "much"}})
        await until(found, "Ready", "False", "Refused")
        await found.told("ChildRefused")
        await found.broker(resources={"limits": {"memory": "1Gi"}})
        await found.ready("Broker", "demo")


@in_loop
async def test_a_namespace_that_is_being_deleted_is_not_told_that_it_takes_no_children(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(control_plane, namespace) as found, found.operator() as operator:
        await found.broker()
        await found.ready("Broker", "demo")
        # No controller removes what is in it: the namespace stays as it is, and so does the Broker.
        await found.api.request("DELETE", BY_NAME["Namespace"].path(None, namespace))
        caplog.set_level("INFO")
        before = (await found.get("Broker", "demo"))["status"]
        refused = operator.api.requests.get(("PATCH", "403"), 0)
        await found.delete("ConfigMap", "demo")

        async def is_refused() -> bool:
            return operator.api.requests.get(("PATCH", "403"), 0) >= refused + REFUSALS

        await eventually(is_refused)
        assert (await found.get("Broker", "demo"))["status"] == before
        assert not [each for each in ("ChildRefused", "ReconcileFailed") if each in caplog.text]


@in_loop
async def test_pods_are_brought_to_a_new_revision_standby_first(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        await until(found, "StandbysReady", "True")
        uids = [(await found.get("Pod", f"demo-{n}"))["metadata"]["uid"] for n in (0, 1)]
        await found.broker(replicas=2, image={"name": "example/lockkeeper:2"})
        await until(found, "Upgrading", "True")
        await until(found, "Upgrading", "False")
        await found.ready("Broker", "demo")
        after = [(await found.get("Pod", f"demo-{n}"))["metadata"]["uid"] for n in (0, 1)]
        assert not set(uids) & set(after)
        status = (await found.get("Broker", "demo"))["status"]
        assert status["master"] == "demo-1"
        assert status["lastFailover"]["cause"]
        await found.told("RollingStep", "SwitchingOver", "FailedOver")
        events = await found.events()
        assert events.count("RollingStep") == 1
        assert events.count("SwitchingOver") == 1


@in_loop
async def test_a_configuration_is_pushed_without_a_restart_and_a_refusal_is_told(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        await until(found, "ConfigurationApplied", "True")
        uid = (await found.get("Pod", "demo-0"))["metadata"]["uid"]
        before = found.nodes.pod("demo-0").text
        await found.broker(destinationPolicies=[{"match": "A.>", "recorded": True}])
        await eventually(lambda: _differs(found, before))
        await until(found, "ConfigurationApplied", "True")
        found.nodes.pod("demo-0").refuses = True
        await found.broker(destinationPolicies=[{"match": "B.>", "recorded": True}])
        await until(found, "ConfigurationApplied", "False", "Refused")
        assert (await found.get("Pod", "demo-0"))["metadata"]["uid"] == uid
        # Until the broker is seen to have it, it may be told once more; then it is left alone.
        calls = found.nodes.brokers["demo"].calls
        pushed = calls.count("POST /api/v1/configuration")
        assert pushed in (2, 3, 4)
        await asyncio.sleep(5)
        assert calls.count("POST /api/v1/configuration") == pushed


async def _differs(found: World, before: str) -> bool:
    return found.nodes.pod("demo-0").text != before


@in_loop
async def test_a_broker_is_ready_only_while_its_service_leads_to_the_master(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        found.nodes.unlabelled.add("demo-0")
        await until(found, "Ready", "False", "NoEndpoint")
        assert await found.condition("Broker", "demo", "MasterElected") == ("True", "Elected")
        assert await found.condition("Broker", "demo", "Stalled") == ("False", "GettingOn")
        found.nodes.unlabelled.clear()
        await found.ready("Broker", "demo")
        await found.told("NotReady", "BecameReady")


@in_loop
async def test_a_failover_is_told_with_its_cause(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        await until(found, "StandbysReady", "True")
        await found.delete("Pod", "demo-0")

        async def moved() -> bool:
            return bool((await found.get("Broker", "demo"))["status"]["master"] == "demo-1")

        await eventually(moved)
        await found.ready("Broker", "demo")
        status = (await found.get("Broker", "demo"))["status"]
        assert status["epoch"] == 2
        assert status["lastFailover"]["cause"].startswith("demo-0")


@in_loop
async def test_a_master_that_is_to_go_hands_over_to_one_that_stays(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=3)
        await found.ready("Broker", "demo")
        await until(found, "StandbysReady", "True")
        # The last pod becomes the master, as after two failovers.
        found.nodes.brokers["demo"].master = "demo-2"

        async def leads(name: str) -> bool:
            return bool((await found.get("Broker", "demo"))["status"].get("master") == name)

        await eventually(lambda: leads("demo-2"))
        await until(found, "StandbysReady", "True")
        seen: list[tuple[str, int]] = []

        async def look() -> None:
            while True:
                replicas = (await found.get("StatefulSet", "demo"))["spec"]["replicas"]
                seen.append((found.nodes.brokers["demo"].master, replicas))
                await asyncio.sleep(0.02)

        looking = asyncio.create_task(look())
        await found.broker(replicas=1)
        await eventually(lambda: found.is_gone("Pod", "demo-2"), 30)
        await eventually(lambda: leads("demo-0"))
        looking.cancel()
        # Never was there a number of pods by which the master would have been taken away.
        assert [each for each in seen if each[1] < 3 and each[0] != "demo-0"] == []
        assert seen[-1] == ("demo-0", 1)
        assert "POST /api/v1/fence" in found.nodes.brokers["demo"].calls
        await found.ready("Broker", "demo")


@in_loop
async def test_paused_changes_nothing_and_hibernated_has_no_pods(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        await found.broker(paused=True, hibernated=True)
        await until(found, "Paused", "True")
        assert not await found.is_gone("Pod", "demo-0")
        await found.broker(hibernated=True)
        await eventually(lambda: found.is_gone("Pod", "demo-0"))
        await until(found, "MasterElected", "False", "Hibernated")
        assert not await found.is_gone("PersistentVolumeClaim", "demo-journal")
        await found.broker()
        await found.ready("Broker", "demo")
