"""Questions to the pods of one Broker, over real sockets: who is asked for destinations."""

import asyncio
import hashlib
import json
import random
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import pytest
from aiohttp import web

from lockkeeper.server.admin.destinations import OF_BROKER
from lockkeeper.server.admin.endpoint import KEPT_SECONDS
from lockkeeper_operator.polling.admin_endpoint import (
    POLL_IDLE_SECONDS,
    Address,
    AdminEndpoints,
    BrokerRefusedError,
    BrokerSilentError,
    Listing,
)
from lockkeeper_operator.polling.poll_state import AskedPod, PollState
from lockkeeper_operator.polling.poller import (
    DESTINATIONS_SECONDS,
    IMPATIENCE,
    REST_SECONDS_MAX,
    News,
    Poller,
    rest_seconds,
)
from lockkeeper_operator.polling.views import report_of, view_of

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


@pytest.mark.parametrize("rest", [9.0, 20.0])
def test_destinations_to_which_nothing_happens_are_asked_for_less_often(rest: float) -> None:
    async def main() -> None:
        broker, admin = Broker(), AdminEndpoints()
        await broker.start()
        poller, state = Poller(admin), PollState(0.0, broker.port)

        async def patience() -> float:
            state.listed_at = float("-inf")
            await poller.ask(state, with_destinations=True, rest=rest)
            return state.listing_patience

        try:
            changed(state, POD)
            found = [await patience() for _ in range(10)]
            assert found[:2] == [DESTINATIONS_SECONDS, DESTINATIONS_SECONDS * IMPATIENCE]
            assert found == sorted(found)
            assert found[-1] == rest
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


@pytest.mark.parametrize(
    ("brokers", "seconds"),
    [(0, 9.0), (1, 9.0), (225, 9.0), (226, 9.04), (500, 20.0), (750, 30.0), (5000, 30.0)],
)
def test_the_more_brokers_there_are_the_longer_each_is_left_alone(
    brokers: int, seconds: float
) -> None:
    """No more than 25 are asked a second, as long as none waits more than 30 s."""
    assert rest_seconds(brokers) == pytest.approx(seconds)


@pytest.mark.parametrize("rest", [9.0, 20.0])
def test_pods_of_a_settled_broker_are_asked_when_it_has_rested(rest: float) -> None:
    async def main() -> None:
        pods = Pods({"a": {"role": "master"}}, tells_beside=False)
        poller, state = Poller(cast("AdminEndpoints", pods)), PollState(0.0)
        changed(state, AskedPod("1", "a", leads=True))
        await poller.ask(state, with_destinations=False, rest=rest)
        state.unsettled = False
        now = asyncio.get_running_loop().time()
        for ago, asked in [(rest * 0.8, 1), (rest * 0.95, 2)]:
            state.asked_at = now - ago
            await poller.ask(state, with_destinations=False, rest=rest)
            assert pods.asked == [("status", "a")] * asked

    asyncio.run(main())


def test_connections_are_kept_until_the_next_question_and_longer_by_brokers() -> None:
    """An end that the broker chose could meet a question that is under way."""
    assert REST_SECONDS_MAX < POLL_IDLE_SECONDS < KEPT_SECONDS


@dataclass
class Pods:
    """The pods of one Broker without sockets: what they say is what was set last."""

    said: dict[str, dict[str, Any]]
    tells_beside: bool
    owners: dict[str, str] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def status(self, address: Address) -> dict[str, Any]:
        """See `AdminEndpoints.status`."""
        self._ask("status", address)
        return dict(self.said[address.host])

    async def destinations(self, address: Address, known: bytes = b"") -> Listing:
        """See `AdminEndpoints.destinations`."""
        self._ask("list", address)
        if self.said[address.host]["role"] != "master":
            raise BrokerRefusedError(409, "this process is not the master")
        broker = dict(self.said[address.host]) if self.tells_beside else None
        text = json.dumps([broker, self.owners])
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        views = self.views()
        return Listing(digest, None) if digest == known else Listing(digest, views, broker)

    def views(self) -> list[dict[str, Any]]:
        """Return the destinations."""
        items = self.owners.items()
        return [{"kind": "Queue", "name": name, "owner": owner} for name, owner in items]

    def _ask(self, what: str, address: Address) -> None:
        self.asked.append((what, address.host))
        if address.host in self.silent:
            raise BrokerSilentError("no answer")


@pytest.mark.parametrize(
    ("tells_beside", "asked"),
    [
        (True, [("list", "a"), ("status", "b")]),
        (False, [("list", "a"), ("status", "a"), ("status", "b")]),
    ],
    ids=["this-release", "earlier-release"],
)
def test_a_master_that_tells_of_itself_with_its_list_is_asked_once(
    tells_beside: bool, asked: list[tuple[str, str]]
) -> None:
    async def main() -> None:
        pods = Pods({"a": {"role": "master"}, "b": {"role": "standby"}}, tells_beside)
        poller, state = Poller(cast("AdminEndpoints", pods)), PollState(0.0)
        state.pods = AskedPod("1", "a", True), AskedPod("2", "b", False)
        for is_first in (True, False):
            pods.asked.clear()
            state.listed_at = state.asked_at = float("-inf")
            news = await poller.ask(state, with_destinations=True)
            assert (news.pods, news.master) == (is_first, is_first)
            assert pods.asked == asked
            assert [state.reports[uid].role for uid in "12"] == ["master", "standby"]

    asyncio.run(main())


def test_what_a_list_told_is_news_although_its_broker_is_no_master_any_more() -> None:
    class Ending(Pods):
        """Lets go of everything right behind its list."""

        async def status(self, address: Address) -> dict[str, Any]:
            return {"role": "fenced"}

    async def main() -> None:
        pods = Pods({"a": {"role": "master"}}, tells_beside=False)
        state = PollState(0.0)
        state.pods = (AskedPod("1", "a", leads=False),)
        await Poller(cast("AdminEndpoints", pods)).ask(state, with_destinations=True)
        ending = Ending(pods.said, tells_beside=False, owners={"ORDERS": "a/b"})
        state.asked_at = state.listed_at = float("-inf")
        news = await Poller(cast("AdminEndpoints", ending)).ask(state, with_destinations=True)
        assert news == News(pods=True, master=True, destinations=frozenset({ORDERS}))

    asyncio.run(main())


def test_a_broker_tells_with_its_list_all_that_its_report_is_made_of() -> None:
    class Noting(dict[str, Any]):
        """Notes what it is asked for."""

        asked: ClassVar[list[str]] = []

        def get(self, key: str, default: Any = None) -> Any:
            self.asked.append(key)
            return super().get(key, default)

    report_of(Noting())
    assert sorted(set(Noting.asked)) == sorted(OF_BROKER)


@pytest.mark.parametrize("seed", range(200))
def test_what_is_known_is_what_was_said_last(seed: int) -> None:
    chance = random.Random(seed)
    tells_beside = chance.random() < 0.8
    pods = Pods({host: {"role": "standby"} for host in "ab"}, tells_beside)
    asked = [AskedPod(host.upper(), host, False) for host in "ab"]

    def change() -> None:
        host = chance.choice("ab")
        what = chance.choice(["role", "configuration", "owner", "silent", "label"])
        if what == "role":
            for each in "ab":
                pods.said[each]["role"] = "standby"
            pods.said[host]["role"] = chance.choice(["master", "standby", "fenced"])
        elif what == "configuration":
            pods.said[host]["configuration"] = chance.choice(["one", "two"])
        elif what == "owner":
            pods.owners[chance.choice(["P", "Q"])] = chance.choice(["a/b", "a/c"])
        elif what == "silent":
            pods.silent ^= {host}
        else:
            for at, pod in enumerate(asked):
                asked[at] = replace(pod, leads=pod.host == host)

    async def main() -> None:
        poller, state = Poller(cast("AdminEndpoints", pods)), PollState(0.0)
        for _ in range(60):
            for _ in range(chance.randrange(3)):
                change()
            state.pods = tuple(asked)
            # Now and then it is time for one of the two questions alone.
            if status_due := chance.random() < 0.7:
                state.asked_at = float("-inf")
            if list_due := chance.random() < 0.7:
                state.listed_at = float("-inf")
            before, stale = (dict(state.reports), dict(state.owned)), state.stale
            news = await poller.ask(state, with_destinations=True)
            assert news.pods is (stale or state.reports != before[0])
            assert bool(news.destinations) is (state.owned != before[1])
            if status_due and list_due and not pods.silent:
                assert state.reports == {pod.uid: report_of(pods.said[pod.host]) for pod in asked}
            if list_due and state.master is not None:
                assert pods.said[state.master.host]["role"] == "master"
                assert list(state.owned.values()) == [view_of(each) for each in pods.views()]

    asyncio.run(main())
