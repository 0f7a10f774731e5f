"""JournalBackups that are VolumeSnapshots; a test plays the driver of the volumes."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world
from test_backups import until
from test_children_drift import definition

from lockkeeper_operator.kubernetes.api.kinds import VOLUME_SNAPSHOT
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.children.steps import Refused
from lockkeeper_operator.kubernetes.children.unwatched import UnwatchedChildren
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.times import written

SNAPSHOTS = definition("VolumeSnapshot", "volumesnapshots", "snapshot.storage.k8s.io")
SPEC = {"broker": "demo", "target": {"snapshot": {}}}
SECONDS = 40.0


@pytest.fixture
def known(control_plane: ControlPlane) -> Iterator[None]:
    """Let the cluster know VolumeSnapshots."""
    control_plane.kubectl("apply", "-f", "-", text=json.dumps(SNAPSHOTS))
    yield
    control_plane.kubectl("delete", "crd", SNAPSHOTS["metadata"]["name"])


async def make_usable(api: ApiServer, namespace: str, name: str) -> None:
    """Play the driver of the volumes."""
    made = {"readyToUse": True, "creationTime": written(datetime.now(UTC))}
    await api.merge(VOLUME_SNAPSHOT, namespace, name, {"status": made})


def amid_a_minute() -> datetime:
    """Return a time soon to come, for a clock that stands still: no other minute begins."""
    return datetime.now(UTC).replace(second=30, microsecond=0) + timedelta(minutes=3)


async def names(found: World) -> list[str]:
    pages = found.api.pages(VOLUME_SNAPSHOT, found.namespace)
    return [item["metadata"]["name"] async for page, _ in pages for item in page]


@in_loop
async def test_a_snapshot_is_made_once_the_cluster_knows_them_and_a_broker_begins_with_it(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        await found.make("JournalBackup", "before", SPEC)
        await until(found, "before", "SnapshotsUnknown")
        await found.broker("again", bootstrap={"backup": "before"})
        control_plane.kubectl("apply", "-f", "-", text=json.dumps(SNAPSHOTS))
        try:
            await until(found, "before", "Running")
            pages = found.api.pages(VOLUME_SNAPSHOT, namespace)
            (snapshot,) = [item async for page, _ in pages for item in page]
            assert snapshot["spec"]["source"] == {"persistentVolumeClaimName": "demo-journal"}
            name = snapshot["metadata"]["name"]
            made = {"readyToUse": True, "creationTime": "2027-03-01T03:00:00Z"}
            await found.api.merge(VOLUME_SNAPSHOT, namespace, name, {"status": made})
            assert (await until(found, "before", "Succeeded"))["snapshot"] == name
            assert await found.condition("JournalBackup", "before") == ("True", "BackedUp")

            async def is_made_of_it() -> bool:
                if await found.is_gone("PersistentVolumeClaim", "again-journal"):
                    return False
                claim = await found.get("PersistentVolumeClaim", "again-journal")
                return bool(claim["spec"]["dataSource"]["name"] == name)

            await eventually(is_made_of_it, SECONDS)
            await found.ready("Broker", "again", SECONDS)
            # It outlives its JournalBackup.
            await found.delete("JournalBackup", "before")
            pages = found.api.pages(VOLUME_SNAPSHOT, namespace)
            assert [item["metadata"]["name"] async for page, _ in pages for item in page] == [name]
            # Another one of its name makes a snapshot of its own.
            await found.make("JournalBackup", "before", SPEC)
            await until(found, "before", "Running")
            pages = found.api.pages(VOLUME_SNAPSHOT, namespace)
            assert len([item async for page, _ in pages for item in page]) == 2
        finally:
            control_plane.kubectl("delete", "crd", SNAPSHOTS["metadata"]["name"])


@pytest.mark.usefixtures("known")
@in_loop
async def test_snapshots_of_a_schedule_are_made_when_due_and_the_latest_are_kept(
    control_plane: ControlPlane, namespace: str
) -> None:
    clock = amid_a_minute()

    async def has_made_another_than(earlier: list[str]) -> bool:
        return bool(set(await names(found)) - set(earlier))

    async with world(control_plane, namespace) as found, found.operator() as operator:
        operator._backups.now = lambda: clock
        await found.broker()
        await found.ready("Broker", "demo")
        regular = {**SPEC, "schedule": {"cron": "* * * * *"}, "keep": 2}
        await found.make("JournalBackup", "regular", regular)
        await eventually(lambda: has_made_another_than([]), SECONDS)
        (first,) = await names(found)
        await make_usable(found.api, namespace, first)
        status = await until(found, "regular", "Succeeded")
        assert status["snapshot"] == first and status["lastScheduleTime"]
        clock += timedelta(minutes=3)
        await found.make("JournalBackup", "regular", {**regular, "keep": 1})
        await eventually(lambda: has_made_another_than([first]), SECONDS)
        assert first in await names(found), "the next one cannot be used yet"
        (second,) = set(await names(found)) - {first}
        await make_usable(found.api, namespace, second)

        async def is_gone() -> bool:
            return first not in await names(found)

        await eventually(is_gone, SECONDS, lambda: names(found))
        assert second in await names(found)


@pytest.mark.usefixtures("known")
@in_loop
async def test_a_snapshot_that_can_be_used_at_once_makes_the_surplus_go_soon(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the operator looks again at what it has made, nothing is being made any more."""
    clock = amid_a_minute()
    apply = UnwatchedChildren._apply

    async def apply_and_make_usable(self: UnwatchedChildren, manifest: Manifest) -> list[Refused]:
        refused = await apply(self, manifest)
        if manifest["kind"] == VOLUME_SNAPSHOT.name:
            await make_usable(self._api, namespace, manifest["metadata"]["name"])
        return refused

    monkeypatch.setattr(UnwatchedChildren, "_apply", apply_and_make_usable)
    async with world(control_plane, namespace) as found, found.operator() as operator:
        operator._backups.now = lambda: clock
        await found.broker()
        await found.ready("Broker", "demo")
        # The one after the second is due an hour later: until then nothing else asks to look.
        hourly = {"cron": f"{clock.minute} * * * *"}
        regular = {**SPEC, "schedule": hourly, "keep": 2}
        await found.make("JournalBackup", "regular", regular)
        await until(found, "regular", "Succeeded")
        first = await names(found)
        clock += timedelta(minutes=61)
        await found.make("JournalBackup", "regular", {**regular, "keep": 1})

        async def only_another_is_left() -> bool:
            left = await names(found)
            return len(left) == 1 and left != first

        await eventually(only_another_is_left, SECONDS, lambda: names(found))
