"""The label of a broker's pod: its task ends when it is told to, whatever happens that moment."""

import asyncio

import pytest
from api_objects import ApiObjects

from lockkeeper.server.cluster.api_server import ApiServer
from lockkeeper.server.cluster.identity import PodIdentity
from lockkeeper.server.cluster.pod_environment import ApiServerAccess
from lockkeeper.server.cluster.role_label import RoleLabel

POD = PodIdentity("pair-0", "uid-0", "default")
SECONDS_MAX = 5


@pytest.mark.parametrize("rounds", range(6))
def test_closing_ends_a_label_whose_role_has_just_changed(rounds: int) -> None:
    objects = ApiObjects()
    objects.add_pod("default", "pair-0", "uid-0")

    async def change_and_close() -> float:
        async with ApiServer(ApiServerAccess(objects.url)) as api, asyncio.timeout(SECONDS_MAX):
            label = RoleLabel(api, POD)
            label.want("standby")
            await label.settled(SECONDS_MAX)
            # Its task now waits for a change; the end comes so many rounds of the loop behind it.
            label.want("master")
            for _ in range(rounds):
                await asyncio.sleep(0)
            began = asyncio.get_running_loop().time()
            await label.close()
            return asyncio.get_running_loop().time() - began

    assert asyncio.run(change_and_close()) < SECONDS_MAX / 2
