"""All links of a client: name servers, brokers, and the routes that lead from those to these.

A route is believed for a while, and until something fails on its way: then the name servers are
asked again, each in turn. That is how a client finds the broker that has taken over.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final

from lockkeeper.client.errors import ConnectionFailedError, IllegalStateError, RequestTimedOutError
from lockkeeper.client.streams.core.commands import request
from lockkeeper.client.streams.core.names import QUEUES_OF_NEW, TEMPLATE
from lockkeeper.client.streams.core.routes import Partition, Route, of_new, read_route
from lockkeeper.client.streams.errors import (
    AddressError,
    BrokerBusyError,
    NoSuchStreamError,
    UnreadableAnswerError,
    refusal,
)
from lockkeeper.client.streams.links.addresses import Address, Means, parse_address
from lockkeeper.client.streams.links.link import Link, Questions, open_link
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.errors import ProtocolError

_LOG = logging.getLogger(__name__)
FAILURES: Final = (
    ConnectionFailedError,
    RequestTimedOutError,
    BrokerBusyError,
    UnreadableAnswerError,
)
"""What may pass if it is tried again, perhaps with another broker."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.05, 1.0


def pause_after(failures: int) -> float:
    """Return how many seconds to wait before something is tried again."""
    return min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * (1 << min(failures, 10)))


async def pause(failures: int, deadline: float, error: Exception) -> None:
    """Wait before the next try; raises the *error* of the last where that would be too late."""
    seconds = pause_after(failures)
    if asyncio.get_running_loop().time() + seconds >= deadline:
        raise error
    await asyncio.sleep(seconds)


def _note_refusal(introduction: "asyncio.Task[None]") -> None:
    if not introduction.cancelled() and (refused := introduction.exception()) is not None:
        _LOG.warning("a broker does not want to know us: %s", refused)


def _address_told(text: str) -> Address:
    try:
        return parse_address(text)
    except AddressError as wrong:
        raise UnreadableAnswerError(
            f"a name server tells an address that is none: {wrong}"
        ) from wrong


class Network:
    """Name servers and brokers of one client.

    Each link to a broker is *introduced* before it is used; *on_loss* is called when one is lost.
    """

    def __init__(
        self,
        names: tuple[Address, ...],
        means: Means,
        questions: Questions,
        introduce: Callable[[Link], Coroutine[Any, Any, None]],
        on_loss: Callable[[], None],
    ) -> None:
        self.means = means
        self._names = list(names)
        self._questions = questions
        self._introduce = introduce
        self._on_loss = on_loss
        self._links: dict[Address, Link] = {}
        self._dialling: dict[Address, asyncio.Task[Link]] = {}
        self._introduced: dict[Link, asyncio.Task[None]] = {}
        self._routes: dict[str, tuple[float, Route]] = {}
        self._is_closed = False

    # Links

    async def link(self, address: Address) -> Link:
        """Return the link to an address, a new one if need be. Raises ConnectionFailedError."""
        link = self._links.get(address)
        if link is not None and link.is_open:
            return link
        if self._is_closed:
            raise IllegalStateError("the connection is closed")
        dialling = self._dialling.get(address)
        if dialling is None:
            dialling = self._dialling[address] = asyncio.create_task(self._dial(address))
            dialling.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Others may wait for it, too.
        return await asyncio.shield(dialling)

    async def _dial(self, address: Address) -> Link:
        try:
            link = await open_link(address, self.means, self._questions)
        finally:
            del self._dialling[address]
        self._links[address] = link
        link.lost.add_done_callback(lambda _: self._note_loss(link))
        return link

    def _note_loss(self, link: Link) -> None:
        if self._links.get(link.address) is link:
            del self._links[link.address]
        if (introduction := self._introduced.pop(link, None)) is not None:
            introduction.cancel()
        self.forget_address(link.address)
        if not self._is_closed:
            _LOG.info("the link to %s is lost: %s", link.address, link.lost.result())
            self._on_loss()

    async def broker_link(self, address: Address) -> Link:
        """Return the link to a broker, which knows us. Raises ConnectionFailedError."""
        link = await self.link(address)
        introduction = self._introduced.get(link)
        if introduction is None:
            introduction = self._introduced[link] = asyncio.create_task(self._introduce(link))
            introduction.add_done_callback(_note_refusal)
        await asyncio.wait([introduction])
        if not link.is_open:
            raise ConnectionFailedError(f"{address}: {link.lost.result()}")
        return link

    def brokers(self) -> list[Link]:
        """Return the open links to brokers."""
        return list(self._introduced)

    # Routes

    async def ask_names(self, asked: Callable[[], Command]) -> Command:
        """Return the answer of the first name server that has one. Raises ConnectionFailedError."""
        reasons = []
        for _ in range(len(self._names)):
            try:
                link = await self.link(self._names[0])
                return await link.request(asked(), self.means.connect_timeout)
            except (ConnectionFailedError, RequestTimedOutError) as error:
                reasons.append(str(error))
                self._names.append(self._names.pop(0))
        raise ConnectionFailedError(f"no name server answers: {'; '.join(reasons)}")

    async def route(self, stream: str) -> Route:
        """Return where a stream is.

        Raises NoSuchStreamError, ConnectionFailedError, UnreadableAnswerError.
        """
        now = asyncio.get_running_loop().time()
        at, known = self._routes.get(stream, (0.0, None))
        if known is not None and now - at < self.means.route_interval:
            return known
        answer = await self.ask_names(
            lambda: request(
                Request.GET_ROUTEINFO_BY_TOPIC, topic=stream, acceptStandardJsonOnly=True
            )
        )
        if answer.code != Response.SUCCESS:
            self._routes.pop(stream, None)
            raise refusal(answer)
        try:
            route = read_route(stream, answer.body)
        except ProtocolError as wrong:
            raise UnreadableAnswerError(f"the route of {stream}: {wrong}") from wrong
        self._routes[stream] = now, route
        return route

    async def route_for_sending(self, stream: str) -> Route:
        """Return where to send to: the template's brokers for a stream that is yet to be made."""
        try:
            return await self.route(stream)
        except NoSuchStreamError:
            try:
                template = await self.route(TEMPLATE)
            except NoSuchStreamError:
                template = None
            if template is None or not template.writable:
                raise
            return of_new(stream, template, QUEUES_OF_NEW)

    def forget_route(self, stream: str) -> None:
        """Have the name servers asked about a stream again."""
        self._routes.pop(stream, None)

    def forget_address(self, address: Address) -> None:
        """Forget the routes that lead to an address."""
        where = str(address)
        for stream, (_, route) in list(self._routes.items()):
            if where in route.addresses.values():
                del self._routes[stream]

    # Requests

    async def ask(self, route: Route, broker: str, asked: Command, timeout: float | None = None,
                  expected: Iterable[int] = (Response.SUCCESS,)) -> Command:  # fmt: skip
        """Return the answer of a broker.

        Raises StreamRefusedError for a code that is not *expected*, ConnectionFailedError,
        RequestTimedOutError.
        """
        address = route.addresses.get(broker)
        if address is None:
            self.forget_route(route.stream)
            raise ConnectionFailedError(f"no address of the broker {broker} is known")
        try:
            link = await self.broker_link(_address_told(address))
            answer = await link.request(asked, timeout)
        except (ConnectionFailedError, RequestTimedOutError):
            self.forget_route(route.stream)
            raise
        if answer.code not in expected:
            error = refusal(answer)
            if isinstance(error, (BrokerBusyError, NoSuchStreamError)):
                self.forget_route(route.stream)
            raise error
        return answer

    async def ask_about(self, partition: Partition, asked: Callable[[], Command], seconds: float,
                        expected: Iterable[int] = (Response.SUCCESS,)) -> Command:  # fmt: skip
        """Return what the broker of a partition answers, whoever that is by then.

        What may pass is tried again, for so many *seconds*. Raises what the last try came to.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        failures = 0
        while True:
            try:
                route = await self.route(partition.stream)
                return await self.ask(route, partition.broker, asked(), expected=expected)
            except FAILURES as error:
                await pause(failures, deadline, error)
                failures += 1

    # The end

    async def close(self) -> None:
        """Close all links."""
        self._is_closed = True
        dialling = list(self._dialling.values())
        for each in dialling:
            each.cancel()
        for each in dialling:
            with suppress(ConnectionFailedError, asyncio.CancelledError):
                await each
        await asyncio.gather(*(link.close() for link in list(self._links.values())))
