"""What nobody changes is left alone: children that no cache has are not applied again and again."""

import asyncio
from pathlib import Path

from control_plane import ControlPlane
from simulated import eventually, in_loop, world
from test_analyses import make_claim
from test_faults import faulty

from lockkeeper_operator.analyses.reconciler import ACTIVE_SECONDS

NIGHTLY = {"cron": "0 3 * * *"}


@in_loop
async def test_schedules_that_are_in_place_are_not_applied_again(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(tmp_path / "proxy"),
    ):
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
        proxy.writes.clear()
        proxy.reads.clear()
        # What was made is looked at soon once more, then every minute.
        await asyncio.sleep(3 * ACTIVE_SECONDS)
        looks = [path for path in proxy.reads if "/cronjobs?" in path]
        assert all(sum(name in path for path in looks) <= 1 for name in ("reports", "copies"))
        assert [each for each in proxy.writes if "/events" not in each] == []
