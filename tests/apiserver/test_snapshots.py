"""JournalBackups that are VolumeSnapshots; a test plays the driver of the volumes."""

import json

from control_plane import ControlPlane
from simulated import eventually, in_loop, world
from test_backups import until
from test_children_drift import definition

from lockkeeper_operator.kubernetes.api.kinds import VOLUME_SNAPSHOT

SNAPSHOTS = definition("VolumeSnapshot", "volumesnapshots", "snapshot.storage.k8s.io")
SPEC = {"broker": "demo", "target": {"snapshot": {}}}
SECONDS = 40.0


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
        finally:
            control_plane.kubectl("delete", "crd", SNAPSHOTS["metadata"]["name"])
