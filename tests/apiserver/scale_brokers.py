"""Simulated brokers in a process of their own:
`scale_brokers.py KUBECONFIG NAMESPACE COUNT RENEWALS`.

Prints the ports of the admin endpoints, then `ready` when so many Brokers have their master. From
then on their Leases are renewed, so many a second altogether.
"""

import asyncio
import contextlib
import itertools
import sys
import time
from datetime import UTC, datetime

from simulated_brokers import SimulatedBrokers
from simulated_nodes import SimulatedNodes

from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.kinds import LEASE
from lockkeeper_operator.kubernetes.api.server import ApiServer, connect

PERIOD_SECONDS = 5.0
RENEWERS = 8


async def renew(api: ApiServer, namespace: str, numbers: range, renewals: float) -> None:
    """Renew the Leases of these Brokers one by one, for ever, as their masters do."""
    begun = time.monotonic()
    for count, number in enumerate(itertools.cycle(numbers)):
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": "master", "renewTime": now}
        with contextlib.suppress(ApiError):
            await api.merge(LEASE, namespace, f"b{number}", {"spec": spec})
        await asyncio.sleep(max(0.0, begun + (count + 1) / renewals - time.monotonic()))


async def main(kubeconfig: str, namespace: str, count: int, renewals: float) -> None:
    """Play nodes until all Brokers have pods, and brokers for ever."""
    api = await connect(kubeconfig)
    simulated = SimulatedBrokers()
    await simulated.start()
    print(simulated.port, simulated.tls_port, flush=True)
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
    if renewals:
        numbers = [range(first, count, RENEWERS) for first in range(RENEWERS)]
        each = renewals / RENEWERS
        await asyncio.gather(*(renew(api, namespace, some, each) for some in numbers if some))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
