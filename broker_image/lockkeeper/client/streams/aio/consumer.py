"""Members of consumer groups for asyncio: they share partitions, and consume what is theirs."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from lockkeeper.client.aio.within import begin_outside, is_within
from lockkeeper.client.errors import ConnectionFailedError, MessagingError
from lockkeeper.client.streams.aio.calling import Caller, Listener
from lockkeeper.client.streams.aio.giving_back import Returns
from lockkeeper.client.streams.aio.holding import Held
from lockkeeper.client.streams.aio.locking import Locks
from lockkeeper.client.streams.aio.offsets import GroupOffsets, Offsets, OwnOffsets, begin_at
from lockkeeper.client.streams.aio.pulling import Pulling, Room
from lockkeeper.client.streams.aio.working import ConcurrentWork, OrderlyWork, Work
from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.groups import GroupSettings, membership, read_members
from lockkeeper.client.streams.core.names import RETRY_PREFIX
from lockkeeper.client.streams.core.routes import Partition, Route
from lockkeeper.client.streams.core.sharing import average
from lockkeeper.client.streams.core.subscriptions import ALL, SQL, Sql, Subscription, subscription
from lockkeeper.client.streams.core.window import Holdings, Window
from lockkeeper.client.streams.errors import NoSuchStreamError, UnreadableAnswerError
from lockkeeper.client.streams.links.network import FAILURES, Network, pause_after
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.errors import ProtocolError

_LOG = logging.getLogger(__name__)
UNBALANCED_SECONDS: Final = 1.0
"""How soon partitions are shared again when it did not work out."""
CLOSE_SECONDS: Final = 10.0
LEAVE_SECONDS, FAREWELL_SECONDS = 30.0, 3.0
"""How long a broker that is away is tried when a partition is left, and the group."""
OnError: TypeAlias = Callable[[Exception], None]


class GroupConsumer:
    """A member of a consumer group; made by `Connection.consumer`.

    `on_error` is called with what brokers refuse, and with errors of the file of offsets; by
    default they are logged. The member goes on trying.
    """

    def __init__(
        self,
        network: Network,
        client_id: str,
        group: str,
        streams: Mapping[str, str | Sql],
        listener: Listener,
        settings: GroupSettings,
        announce: Callable[[], Coroutine[Any, Any, None]],
        closed: "Callable[[GroupConsumer], None]",
    ) -> None:
        """Raises ValueError for what is no subscription. *announce* sends heartbeats."""
        self.group = group
        self.settings = settings
        self.on_error: OnError = self._log_error
        self._network = network
        self._client_id = client_id
        self._announce = announce
        self._closed = closed
        wanted = dict(streams)
        if not settings.broadcasting:
            wanted[RETRY_PREFIX + group] = ALL
        self._subscriptions = [subscription(each, what) for each, what in wanted.items()]
        self._offsets: Offsets = (
            OwnOffsets(settings.offsets_file)
            if settings.broadcasting
            else GroupOffsets(network, group)
        )
        self._locks = Locks(network, group, client_id)
        self._room = Room(settings.each, settings.all)
        self._caller = Caller(self, listener, settings.concurrency)
        returns = Returns(network, group, settings)
        self._work: Work = (
            OrderlyWork(self._caller, settings, self._room, returns.give_up)
            if settings.orderly
            else ConcurrentWork(self._caller, settings, self._room, returns.give_back)
        )
        self._checked: set[Subscription] = set()
        self._held: dict[Partition, Held] = {}
        self._unused: set[Partition] = set()
        self._leaving: dict[Partition, asyncio.Task[None]] = {}
        self._sharing_due = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closed = False

    async def __aenter__(self) -> "GroupConsumer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, timeout: float) -> None:
        """Begin to consume; returns once partitions were shared, or after *timeout* seconds.

        Raises what a broker refuses.
        """
        await self._announce()
        repeated = [self._share_often(), self._commit_often()]
        if self.settings.has_locks:
            repeated.append(self._renew_often())
        self._tasks = [asyncio.create_task(each) for each in repeated]
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(self._opened)
        except TimeoutError:
            _LOG.warning("group %s: partitions are not shared yet; going on trying", self.group)

    # What others see of it

    @property
    def partitions(self) -> list[Partition]:
        """The partitions that this member consumes now, without those of retries."""
        return sorted(each for each in self._held if not each.stream.startswith(RETRY_PREFIX))

    @property
    def in_hand(self) -> Holdings:
        """Messages that are read and not consumed, and their bytes."""
        return self._room.held

    def told(self) -> dict[str, Any]:
        """Return what heartbeats tell of this member."""
        return membership(self.group, self.settings, self._subscriptions)

    def share_soon(self) -> None:
        """Share partitions anew, since something has changed."""
        self._sharing_due.set()

    def _log_error(self, error: Exception) -> None:
        _LOG.warning("group %s: %s", self.group, error)

    def _note_error(self, error: Exception) -> None:
        """Tell of an error, at first by who waits for the beginning."""
        if self._opened.done():
            self.on_error(error)
        else:
            self._opened.set_exception(error)
            # The one who waits may have gone.
            self._opened.exception()

    # Sharing of partitions

    async def _share_often(self) -> None:
        while True:
            self._sharing_due.clear()
            is_balanced = await self._share_all()
            seconds = self.settings.rebalance_interval if is_balanced else UNBALANCED_SECONDS
            try:
                async with asyncio.timeout(seconds):
                    await self._sharing_due.wait()
            except TimeoutError:
                continue

    async def _share_all(self) -> bool:
        """Share the partitions of all streams; False if that is to be done again soon."""
        is_balanced = is_over = True
        for each in self._subscriptions:
            try:
                is_balanced &= await self._share(each)
            except NoSuchStreamError:
                # It may be made later.
                is_balanced = False
            except FAILURES as error:
                _LOG.info("group %s: sharing %s: %s", self.group, each.stream, error)
                is_balanced = is_over = False
            except (MessagingError, OSError) as error:
                self._note_error(error)
                is_balanced = False
        if is_over and not self._opened.done():
            self._opened.set_result(None)
        return is_balanced

    async def _share(self, wanted: Subscription) -> bool:
        """Take this member's share of a stream, and let go of what is not its. See `_share_all`."""
        route = await self._network.route(wanted.stream)
        await self._check_filter(route, wanted)
        mine = list(route.readable)
        if not self.settings.broadcasting:
            members = await self._members(route)
            if self._client_id not in members:
                await self._announce()
                raise ConnectionFailedError(f"{min(route.addresses)} does not know us yet")
            mine = average(mine, members, self._client_id)
        for partition, held in list(self._held.items()):
            if partition.stream == wanted.stream and partition not in mine:
                self._drop(held)
        missing = [each for each in mine if each not in self._held and each not in self._leaving]
        locked_at = asyncio.get_running_loop().time()
        if self.settings.has_locks:
            missing = await self._lock(wanted.stream, mine, missing)
        for partition in missing:
            await self._hold(partition, wanted, locked_at)
        return all(each in self._held for each in mine)

    async def _lock(
        self, stream: str, mine: list[Partition], missing: list[Partition]
    ) -> list[Partition]:
        """Return those of the *missing* partitions whose locks are ours now.

        Others may wait for locks that we were given once and did not come to use.
        """
        others = {each for each in self._unused if each.stream == stream} - set(mine)
        if others:
            await self._locks.release(others, FAREWELL_SECONDS)
            self._unused -= others
        if not missing:
            return []
        # The answer may be lost, and the lock be ours.
        self._unused.update(missing)
        locked = await self._locks.acquire(missing)
        return [each for each in missing if each in locked]

    async def _check_filter(self, route: Route, wanted: Subscription) -> None:
        """Have a condition checked before anything is read by it. Raises InvalidFilterError."""
        if wanted.kind == SQL and wanted not in self._checked and route.addresses:
            request = commands.filter_check(self._client_id, self.group, wanted)
            await self._network.ask(route, min(route.addresses), request)
            self._checked.add(wanted)

    async def _members(self, route: Route) -> list[str]:
        """Return the client ids of the group's members; none if the broker knows of none."""
        if not route.addresses:
            return []
        request = commands.request(Request.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=self.group)
        expected = (Response.SUCCESS, Response.SYSTEM_ERROR)
        answer = await self._network.ask(route, min(route.addresses), request, expected=expected)
        if answer.code != Response.SUCCESS:
            return []
        try:
            return read_members(answer.body)
        except ProtocolError as wrong:
            raise UnreadableAnswerError(f"the members of {self.group}: {wrong}") from wrong

    async def _hold(self, partition: Partition, wanted: Subscription, locked_at: float) -> None:
        """Begin to consume a partition."""
        offset = await begin_at(self._network, self._offsets, partition, self.settings.begin)
        has_lock = self.settings.has_locks
        until = locked_at + self.settings.lock_believed if has_lock else float("inf")
        window = Window(offset, self._room.held)
        self._unused.discard(partition)
        held = self._held[partition] = Held(partition, window, offset, until, has_lock=has_lock)
        self._work.begin(held)
        held.pulling = Pulling(
            self._network, self.group, partition, wanted, window, self._room,
            partial(self._work.accept, held), self._note_error,
        )  # fmt: skip
        _LOG.info("group %s: consuming %s from offset %d", self.group, partition, offset)

    def _drop(self, held: Held, offset: int | None = None) -> None:
        """Let go of a partition, in the background: a listener may be at work.

        The group goes on at *offset*; by default behind what was consumed.
        """
        held.drop()
        del self._held[held.partition]
        leaving = asyncio.create_task(self._leave(held, offset))
        self._leaving[held.partition] = leaving
        leaving.add_done_callback(lambda _: self._note_left(held.partition))

    def _note_left(self, partition: Partition) -> None:
        del self._leaving[partition]
        self.share_soon()

    async def _leave(self, held: Held, offset: int | None) -> None:
        await held.stop_reading()
        await self._work.end(held)
        position = held.window.position if offset is None else offset
        held.window.clear()
        self._room.note_freed()
        # Whoever has taken a lock from us may be further.
        is_ours = held.has_lock or not self.settings.has_locks
        if is_ours and position != held.committed:
            await self._save_before_leaving({held.partition: position})
        if held.has_lock:
            await self._locks.release([held.partition], LEAVE_SECONDS)

    def go_on_at(self, offsets: Mapping[Partition, int]) -> None:
        """Consume from other offsets, which somebody has reset the group to."""
        for partition, offset in offsets.items():
            held = self._held.get(partition)
            if held is not None:
                _LOG.info("group %s: %s goes on at offset %d", self.group, partition, offset)
                self._drop(held, offset)

    # Offsets and locks

    async def _commit_often(self) -> None:
        while True:
            await asyncio.sleep(self.settings.commit_interval)
            await self.commit()

    async def commit(self) -> None:
        """Keep how far the group is in the partitions of this member. Raises nothing."""
        moved = self._moved()
        for partition in await self._save(moved):
            held = self._held.get(partition)
            if held is not None:
                held.committed = moved[partition]

    def _moved(self) -> dict[Partition, int]:
        return {
            partition: held.window.position
            for partition, held in self._held.items()
            if held.window.position != held.committed
        }

    async def _save_before_leaving(self, offsets: Mapping[Partition, int]) -> None:
        """Have offsets kept; a broker that is away for a moment is tried again."""
        deadline = asyncio.get_running_loop().time() + FAREWELL_SECONDS
        left, failures = dict(offsets), 0
        while left and asyncio.get_running_loop().time() < deadline:
            if failures:
                await asyncio.sleep(pause_after(failures))
            for each in await self._save(left):
                del left[each]
            failures += 1

    async def _save(self, offsets: Mapping[Partition, int]) -> Iterable[Partition]:
        try:
            return await self._offsets.save(offsets) if offsets else ()
        except OSError as error:
            _LOG.warning("group %s: offsets are not kept: %s", self.group, error)
            return ()

    async def _renew_often(self) -> None:
        interval = self.settings.lock_interval
        while True:
            await asyncio.sleep(interval)
            is_renewed = await self._renew_locks()
            interval = self.settings.lock_interval if is_renewed else UNBALANCED_SECONDS

    async def _renew_locks(self) -> bool:
        """Renew locks, also of what is being left: its last message is not done yet."""
        there = list(self._held.values())
        asked_at = asyncio.get_running_loop().time()
        try:
            locked = await self._locks.acquire(
                [*(each.partition for each in there), *self._leaving]
            )
        except MessagingError as error:
            _LOG.info("group %s: renewing locks: %s", self.group, error)
            return False
        for held in there:
            if held.partition in locked:
                held.locked_until = asked_at + self.settings.lock_believed
            elif not held.is_dropped:
                _LOG.warning("group %s: the lock on %s is lost", self.group, held.partition)
                held.has_lock = False
                self._drop(held)
        return True

    # The end

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Leave the group, once the listeners at work are done and offsets are kept.

        After *timeout* seconds those at work are cancelled: their messages come again, to others.
        A listener that closes its own group does not wait for that.
        """
        if is_within(self):
            self.end_listener()
            begin_outside(self.close(timeout))
            return
        if self._is_closed:
            await self._ended.wait()
            return
        self._is_closed = True
        try:
            await self._close(timeout)
        finally:
            for task in self._tasks:
                task.cancel()
            self._closed(self)
            self._ended.set()

    def end_listener(self) -> None:
        """Give the listener nothing any more; for any thread."""
        self._work.begin_nothing()

    async def _close(self, timeout: float) -> None:
        # Locks are renewed, and offsets kept, as long as listeners are at work.
        await _end(self._tasks[:1])
        await asyncio.gather(*(held.stop_reading() for held in self._held.values()))
        try:
            async with asyncio.timeout(timeout):
                await self._work.finish()
        except TimeoutError:
            _LOG.warning("group %s: listeners are cancelled after %g s", self.group, timeout)
        finally:
            await self._work.cancel()
            self._caller.close()
        if leaving := list(self._leaving.values()):
            await asyncio.wait(leaving, timeout=FAREWELL_SECONDS)
            await _end(leaving)
        await _end(self._tasks)
        await self._save_before_leaving(self._moved())
        await self._say_farewell()

    async def _say_farewell(self) -> None:
        """Leave the group, with its locks; they stay while a thread may be at a message."""
        is_at_work = self._caller.running > 0
        if self.settings.has_locks and not is_at_work:
            await self._locks.release([*self._held, *self._unused], FAREWELL_SECONDS)
        for held in self._held.values():
            held.drop()
            held.window.clear()
        if self.settings.has_locks and is_at_work:
            return
        for link in self._network.brokers():
            leaving = commands.request(
                Request.UNREGISTER_CLIENT, clientID=self._client_id, consumerGroup=self.group
            )
            try:
                await link.request(leaving)
            except MessagingError as error:
                _LOG.info("group %s: leaving it at %s: %s", self.group, link.address, error)


async def _end(tasks: "list[asyncio.Task[None]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
