"""Questions to the pods of one Broker, over real sockets: who is asked for destinations."""

import asyncio
from dataclasses import dataclass, field, replace

from aiohttp import web

from lockkeeper_operator.polling.admin_endpoint import Address, AdminEndpoints
from lockkeeper_operator.polling.poll_state import AskedPod, PollState
from lockkeeper_operator.polling.poller import (
    DESTINATIONS_SECONDS,
    IMPATIENCE,
    STATUS_SECONDS,
    News,
    Poller,
)

LOOPBACK = "127.0.0.1"
POD = AskedPod("uid", LOOPBACK, leads=True)
ORDERS = ("Queue", "ORDERS")


@dataclass
class Broker:
    """A broker's admin endpoint."""

    role: str = "master"
    owner: str = "a/b"
    port: int = 0
    runner: web.AppRunner = field(init=False)

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/api/v1/status", self._status)
        app.router.add_get("/api/v1/destinations", self._list)
        self.runner = web.AppRunner(app, access_log=None)
        await self.runner.setup()
        await web.TCPSite(self.runner, LOOPBACK, 0).start()
        self.port = self.runner.addresses[0][1]

    async def _status(self, _: web.Request) -> web.Response:
        return web.json_response({"role": self.role})

    async def _list(self, _: web.Request) -> web.Response:
        if self.role != "master":
            return web.json_response({"error": "this process is not the master"}, status=409)
        kind, name = ORDERS
        listed = {"kind": kind, "name": name, "owner": self.owner}
        return web.json_response({"destinations": [listed]})


def changed(state: PollState, pod: AskedPod) -> None:
    """Note that a pod has changed, as who watches pods does."""
    state.pods, state.stale = (pod,), True


def test_a_master_that_serves_on_without_its_label_is_asked_until_it_stops() -> None:
    async def main() -> None:
        broker, admin = Broker(), AdminEndpoints()
        await broker.start()
        poller, state = Poller(admin), PollState(0.0, broker.port)
        try:
            changed(state, POD)
            first = await poller.ask(state, with_destinations=True)
            assert first == News(pods=True, master=True, destinations=frozenset({ORDERS}))
            assert state.master == Address(LOOPBACK, broker.port, "")
            unlabelled = replace(POD, leads=False)
            changed(state, unlabelled)
            assert await poller.ask(state, with_destinations=True) == News(pods=True)
            assert state.master == Address(LOOPBACK, broker.port, "")
            broker.role = "fenced"
            changed(state, unlabelled)
            assert await poller.ask(state, with_destinations=True) == News(pods=True, master=True)
            assert state.master is None
        finally:
            await admin.close()
            await broker.runner.cleanup()

    asyncio.run(main())


def test_destinations_to_which_nothing_happens_are_asked_for_less_often() -> None:
    async def main() -> None:
        broker, admin = Broker(), AdminEndpoints()
        await broker.start()
        poller, state = Poller(admin), PollState(0.0, broker.port)

        async def patience() -> float:
            state.listed_at = float("-inf")
            await poller.ask(state, with_destinations=True)
            return state.listing_patience

        try:
            changed(state, POD)
            found = [await patience() for _ in range(7)]
            assert found[:2] == [DESTINATIONS_SECONDS, DESTINATIONS_SECONDS * IMPATIENCE]
            assert found == sorted(found)
            assert found[-1] == STATUS_SECONDS
            broker.owner = "a/c"
            assert await patience() == DESTINATIONS_SECONDS
            assert await patience() > DESTINATIONS_SECONDS
            state.touched[ORDERS] = 0.0
            assert await patience() == DESTINATIONS_SECONDS
            # One that is not to be asked yet is not.
            await poller.ask(state, with_destinations=True)
            assert state.listing_patience == DESTINATIONS_SECONDS
        finally:
            await admin.close()
            await broker.runner.cleanup()

    asyncio.run(main())
