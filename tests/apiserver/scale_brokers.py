"""Simulated brokers in a process of their own: `scale_brokers.py KUBECONFIG NAMESPACE COUNT`.

Prints the port of the admin endpoints, then `ready` when so many Brokers have their master.
"""

import asyncio
import contextlib
import sys

from simulated_brokers import SimulatedBrokers
from simulated_nodes import SimulatedNodes

from lockkeeper_operator.api.errors import ApiError
from lockkeeper_operator.api.server import connect

PERIOD_SECONDS = 5.0


async def main(kubeconfig: str, namespace: str, count: int) -> None:
    """Play nodes until all Brokers have pods, and brokers for ever."""
    api = await connect(kubeconfig)
    simulated = SimulatedBrokers()
    await simulated.start()
    print(simulated.port, flush=True)
    nodes = SimulatedNodes(api, namespace, simulated)
    labelled = False
    while not labelled:
        before = len(simulated.pods)
        with contextlib.suppress(ApiError):
            await nodes.step()
            # The step after the last pod was made has labelled it.
            labelled = before == len(simulated.pods) == count
        await asyncio.sleep(PERIOD_SECONDS)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
