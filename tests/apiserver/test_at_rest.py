"""What nobody changes is left alone: children that no cache has are not applied again and again."""

import asyncio
import json
from pathlib import Path

import pytest
from control_plane import ControlPlane
from faulty_proxy import FaultyProxy
from simulated import World, eventually, in_loop, world
from test_analyses import make_claim
from test_faults import faulty

from lockkeeper_operator.analyses.reconciler import ACTIVE_SECONDS
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME
from lockkeeper_operator.kubernetes.children.unwatched import UnwatchedChildren
from lockkeeper_operator.kubernetes.manifests import Manifest

NIGHTLY = {"cron": "0 3 * * *"}


async def make_schedules(found: World) -> None:
    """Make an analysis and a backup by a schedule, and wait until both are in place."""
    make_claim(found, "journal")
    await found.broker()
    await found.ready("Broker", "demo")
    analysis = {"source": {"claim": {"name": "journal"}}, "engine": "native"}
    await found.make("JournalAnalysis", "reports", {**analysis, "schedule": NIGHTLY})
    backup = {"broker": "demo", "target": {"claim": {"name": "backups"}}}
    await found.make("JournalBackup", "copies", {**backup, "schedule": NIGHTLY})

    async def are_scheduled() -> bool:
        return (
            await found.condition("JournalAnalysis", "reports", "Submitted"),
            await found.condition("JournalBackup", "copies"),
        ) == (("True", "Scheduled"), ("True", "Scheduled"))

    await eventually(are_scheduled)


async def watch(proxy: FaultyProxy) -> None:
    """Let the operator look: soon once more at what it has made, then every minute."""
    proxy.writes.clear()
    proxy.reads.clear()
    await asyncio.sleep(3 * ACTIVE_SECONDS)


@in_loop
async def test_schedules_that_are_in_place_are_not_applied_again(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(tmp_path / "proxy"),
    ):
        await make_schedules(found)
        await watch(proxy)
        looks = [path for path in proxy.reads if "/cronjobs?" in path]
        assert all(sum(name in path for path in looks) <= 1 for name in ("reports", "copies"))
        assert [each for each in proxy.writes if "/events" not in each] == []


@in_loop
async def test_schedules_that_admission_changes_are_not_applied_again_and_again(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = UnwatchedChildren._patch

    async def patch_as_admitted(self: UnwatchedChildren, manifest: Manifest, force: bool) -> None:
        """Write what a webhook makes of it that leads images to a mirror."""
        text = json.dumps(manifest).replace('"image": "', '"image": "mirror.example/')
        await patch(self, json.loads(text), force)

    monkeypatch.setattr(UnwatchedChildren, "_patch", patch_as_admitted)
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(tmp_path / "proxy"),
    ):
        await make_schedules(found)
        kind = BY_NAME["CronJob"]
        made = [item async for page, _ in found.api.pages(kind, namespace) for item in page]
        templates = [each["spec"]["jobTemplate"]["spec"]["template"] for each in made]
        images = [each["spec"]["containers"][0]["image"] for each in templates]
        assert [each.startswith("mirror.example/") for each in images] == [True, True]
        await watch(proxy)
        # A look applies each of them once, and changes nothing.
        applied = [each for each in proxy.writes if "/cronjobs/" in each]
        assert len(applied) == len(set(applied))
