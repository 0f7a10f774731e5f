"""How the operator asks brokers: over TLS, by certificates of its own authority."""

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world

from lockkeeper.cli.cluster.forwarding import admin_token
from lockkeeper.cli.cluster.kubectl import Kubectl
from lockkeeper_operator.certificates.authority import LOOK_SECONDS
from lockkeeper_operator.certificates.issuing import Pair, facts_of, issued, new_authority
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME, SECRET
from lockkeeper_operator.kubernetes.encoding import encoded

AUTHORITY = "lockkeeper-operator-authority"
ASKED_SECONDS = 11.0
"""Longer than every period in which brokers are asked."""


async def read(found: World, name: str) -> dict[str, str]:
    """Return what a Secret holds, nothing where it is not there."""
    secret = await found.api.read_if_there(SECRET, found.namespace, name) or {}
    return {key: base64.b64decode(value).decode() for key, value in secret.get("data", {}).items()}


def pair_of(data: dict[str, str]) -> Pair:
    return Pair(data["tls.crt"], data["tls.key"])


async def asked(found: World) -> dict[tuple[str, str], int]:
    """Return how both pods are asked from now on."""
    found.simulated.ways.clear()
    await asyncio.sleep(ASKED_SECONDS)

    async def both_were() -> bool:
        return len({pod for pod, _ in found.simulated.ways}) == 2

    await eventually(both_were)
    return dict(found.simulated.ways)


async def pods(found: World) -> dict[str, str]:
    listed: dict[str, str] = {}
    async for items, _ in found.api.pages(BY_NAME["Pod"], found.namespace):
        listed |= {each["metadata"]["name"]: each["metadata"]["uid"] for each in items}
    return listed


async def is_issued_by(found: World, authority: str) -> bool:
    data = await read(found, "demo-admin")
    return bool(data) and facts_of(pair_of(data), authority) is not None


async def patch(found: World, name: str, data: dict[str, Any]) -> None:
    await found.api.merge(SECRET, found.namespace, name, {"data": data})


@in_loop
async def test_brokers_are_asked_over_tls_alone(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.destination()
        await found.ready("Broker", "demo")
        await found.ready("Destination", "orders")
        authority = await read(found, AUTHORITY)
        data = await read(found, "demo-admin")
        facts = facts_of(pair_of(data), authority["tls.crt"])
        assert facts is not None
        service = f"demo-replicas.{namespace}.svc"
        wanted = (service, f"{service}.cluster.local", f"*.{service}.cluster.local")
        assert facts.names == wanted
        assert data["ca.crt"] == authority["ca.crt"] == authority["tls.crt"]
        assert "tls.key" in authority and authority["tls.key"] != data["tls.key"]
        assert {way for _, way in found.simulated.ways} == {"https"}
        assert {pod for pod, _ in await asked(found)} == {"demo-0", "demo-1"}


@in_loop
async def test_a_process_that_follows_goes_on_with_the_authority_that_is_there(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found:
        async with found.operator():
            await found.broker(replicas=2)
            await found.ready("Broker", "demo")
        before = await found.versions()
        async with found.operator():
            assert set(await asked(found)) == {("demo-0", "https"), ("demo-1", "https")}
        assert await found.versions() == before


@in_loop
async def test_pods_of_an_earlier_release_are_asked_as_before_until_they_begin_anew(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        found.nodes.has_tls = False
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        before = await pods(found)
        assert {way for _, way in found.simulated.ways} == {"http"}
        # What the template has since then restarts nothing; a person does.
        assert await pods(found) == before
        found.nodes.has_tls = True
        await found.nodes.mount("demo")
        await found.broker(replicas=2, resources={"requests": {"cpu": "1m"}})

        async def are_new() -> bool:
            return not (await pods(found)).items() & before.items()

        await eventually(are_new)
        await found.ready("Broker", "demo")
        assert set(await asked(found)) == {("demo-0", "https"), ("demo-1", "https")}


@in_loop
async def test_a_certificate_is_renewed_before_its_end_and_nothing_restarts(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator(resync=2.0):
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        before = await pods(found)
        authority = pair_of(await read(found, AUTHORITY))
        facts = facts_of(pair_of(await read(found, "demo-admin")), authority.certificate)
        assert facts is not None
        old = issued(authority, facts.names, datetime.now(UTC) - timedelta(days=61))
        assert facts_of(old, authority.certificate) is not None
        await patch(found, "demo-admin", encoded({"tls.crt": old.certificate, "tls.key": old.key}))

        async def is_renewed() -> bool:
            data = await read(found, "demo-admin")
            ends = facts_of(pair_of(data), authority.certificate)
            return ends is not None and ends.is_fresh(datetime.now(UTC))

        await eventually(is_renewed)
        await found.nodes.mount("demo")
        assert set(await asked(found)) == {("demo-0", "https"), ("demo-1", "https")}
        assert await pods(found) == before


@in_loop
async def test_kubectl_lockkeeper_finds_the_token_that_the_operator_made(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECTL", " ".join(control_plane.binaries.kubectl))
    options = (f"--kubeconfig={control_plane.kubeconfig}", f"--namespace={namespace}")
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        token = await asyncio.to_thread(admin_token, Kubectl(options), "demo")
        assert token == found.nodes.brokers["demo"].token


@in_loop
async def test_the_authority_is_replaced_while_brokers_run(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        before, first = await pods(found), await read(found, AUTHORITY)
        token = (await read(found, "demo-admin"))["admin-token"]
        await found.delete("Secret", AUTHORITY)

        async def is_new() -> bool:
            now = await read(found, AUTHORITY)
            return bool(now) and now["tls.crt"] != first["tls.crt"]

        await eventually(is_new, LOOK_SECONDS + 10)
        second = await read(found, AUTHORITY)
        assert second["ca.crt"] == second["tls.crt"] + first["tls.crt"]
        await eventually(lambda: is_issued_by(found, second["tls.crt"]))
        # Pods still have certificates of the first one, and are believed.
        assert set(await asked(found)) == {("demo-0", "https"), ("demo-1", "https")}
        await found.nodes.mount("demo")
        assert set(await asked(found)) == {("demo-0", "https"), ("demo-1", "https")}
        assert await found.condition("Broker", "demo") == ("True", "Serving")
        assert await pods(found) == before
        assert (await read(found, "demo-admin"))["admin-token"] == token


@in_loop
async def test_an_authority_that_is_about_to_end_makes_room_for_another(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found:
        old = new_authority(AUTHORITY, datetime.now(UTC) - timedelta(days=300))
        metadata = {"name": AUTHORITY, "namespace": namespace}
        values = {"tls.crt": old.certificate, "tls.key": old.key, "ca.crt": old.certificate}
        secret = {"metadata": metadata, "type": "kubernetes.io/tls", "data": encoded(values)}
        await found.api.create(SECRET, secret)
        async with found.operator():
            data = await read(found, AUTHORITY)
            assert data["ca.crt"] == data["tls.crt"] + old.certificate
            await found.broker()
            await found.ready("Broker", "demo")
            assert await is_issued_by(found, data["tls.crt"])


@in_loop
async def test_what_is_no_authority_is_replaced_and_never_trusted(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found:
        metadata = {"name": AUTHORITY, "namespace": namespace}
        data = encoded({"tls.crt": "a", "tls.key": "b"})
        secret = {"metadata": metadata, "type": "kubernetes.io/tls", "data": data}
        await found.api.create(SECRET, secret)
        async with found.operator():
            kept = await read(found, AUTHORITY)
            assert facts_of(pair_of(kept), kept["tls.crt"]) is not None
            assert kept["ca.crt"] == kept["tls.crt"]
