"""One connection to a name server or a broker: requests out, answers in, in any order."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from lockkeeper.client.errors import ConnectionFailedError, RequestTimedOutError
from lockkeeper.client.links.dialling import open_socket
from lockkeeper.client.streams.links.addresses import Address, Means
from lockkeeper.protocols.rocketmq.codec import IS_ANSWER, IS_ONE_WAY, Command, decode, encode
from lockkeeper.protocols.rocketmq.codes import Response
from lockkeeper.protocols.rocketmq.errors import ProtocolError
from lockkeeper.protocols.rocketmq.frames import FrameBuffer

RECEIVE_BYTES: Final = 256 << 10
UNSENT_BYTES_MAX: Final = 1 << 20
"""So much may wait for the system to take it before requests wait, too."""

Questions = Callable[["Link", Command], bool]
"""Takes a request of the broker; False where it is none that is known."""


class Link:
    """An open connection; `lost` is done once it is of no use any more, with the reason."""

    def __init__(
        self,
        address: Address,
        means: Means,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        questions: Questions,
    ) -> None:
        self.address = address
        self.lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._means = means
        self._reader = reader
        self._writer = writer
        self._questions = questions
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Command]] = {}
        self._unsent: list[bytes] = []
        self._heard_at = asyncio.get_running_loop().time()
        writer.transport.set_write_buffer_limits(UNSENT_BYTES_MAX)
        self._reading = asyncio.create_task(self._read(), name=f"link to {address}")

    @property
    def is_open(self) -> bool:
        """Tell whether requests may be sent."""
        return not self.lost.done()

    async def request(self, request: Command, timeout: float | None = None) -> Command:
        """Return the answer to a request, whatever it says.

        Raises ConnectionFailedError when the link is lost first, RequestTimedOutError after
        *timeout* seconds (default: the link's). A peer of which nothing was heard in all that time
        is taken for dead, and the link ends.
        """
        seconds = self._means.request_timeout if timeout is None else timeout
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        number = self._say(request)
        answered = self._asked[number] = loop.create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._writer.drain()
                answer: Command = await answered
                return answer
        except TimeoutError:
            text = f"{self.address} has not answered within {seconds:g} s"
            if self._heard_at <= asked_at:
                self.lose(ConnectionFailedError(f"{text}, nor said anything else"))
            raise RequestTimedOutError(text) from None
        except ConnectionError as error:
            raise ConnectionFailedError(f"{self.address}: {error}") from error
        finally:
            del self._asked[number]
            if answered.done() and not answered.cancelled():
                # The one who waited may have gone.
                answered.exception()

    def say_one_way(self, request: Command) -> None:
        """Send a request that nobody waits for an answer of. Raises ConnectionFailedError."""
        request.flag = IS_ONE_WAY
        self._say(request)

    def answer(self, request: Command, answer: Command) -> None:
        """Answer a request of the broker, if it waits for that."""
        if self.is_open and not request.is_one_way:
            answer.opaque, answer.flag, answer.encoding = (
                request.opaque,
                IS_ANSWER,
                request.encoding,
            )
            self._write(encode(answer))

    def _say(self, request: Command) -> int:
        if self.lost.done():
            raise ConnectionFailedError(f"{self.address}: {self.lost.result()}")
        request.opaque = next(self._numbers) & 0x7FFFFFFF
        if self._means.credentials is not None:
            self._means.credentials.sign(request)
        self._write(encode(request))
        return request.opaque

    def _write(self, frame: bytes) -> None:
        """Write a frame with all others of this turn."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(frame)

    def _flush(self) -> None:
        frames, self._unsent = self._unsent, []
        if self.is_open:
            self._writer.writelines(frames)

    # Reading

    async def _read(self) -> None:
        buffer = FrameBuffer(self._means.frame_bytes_max)
        loop = asyncio.get_running_loop()
        try:
            while data := await self._reader.read(RECEIVE_BYTES):
                self._heard_at = loop.time()
                buffer.feed(data)
                while (frame := buffer.take_frame()) is not None:
                    self._take_command(decode(frame))
            self.lose(ConnectionFailedError("the peer has closed the connection"))
        except (OSError, ProtocolError) as error:
            self.lose(error)
        except asyncio.CancelledError:
            self.lose(ConnectionFailedError("the connection is closed"))
            raise

    def _take_command(self, command: Command) -> None:
        if command.is_answer:
            asked = self._asked.get(command.opaque)
            if asked is not None and not asked.done():
                asked.set_result(command)
        elif not self._questions(self, command):
            remark = f"the client does not know requests of the code {command.code}"
            code = Response.REQUEST_CODE_NOT_SUPPORTED
            self.answer(command, Command(code, remark=remark))

    # The end

    def lose(self, error: Exception) -> None:
        """End the link, once: whoever waits for an answer learns of it."""
        if self.lost.done():
            return
        self.lost.set_result(error)
        self._reading.cancel()
        self._writer.transport.abort()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(ConnectionFailedError(f"{self.address}: {error}"))

    async def close(self) -> None:
        """Send what is left, and end the link."""
        self._flush()
        if self.is_open:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(1):
                    self._writer.close()
                    await self._writer.wait_closed()
        self.lose(ConnectionFailedError("the connection is closed"))
        with suppress(asyncio.CancelledError):
            await self._reading


async def open_link(address: Address, means: Means, questions: Questions) -> Link:
    """Return a link to an address. Raises ConnectionFailedError."""
    tls = means.tls
    context = None if tls is None else tls.context()
    try:
        async with asyncio.timeout(means.connect_timeout):
            opened = await open_socket(address.host, address.port)
            try:
                reader, writer = await asyncio.open_connection(
                    sock=opened,
                    ssl=context,
                    server_hostname=None if context is None else address.host,
                    limit=RECEIVE_BYTES,
                )
            except BaseException:
                opened.close()
                raise
    except TimeoutError:
        text = f"{address} does not answer within {means.connect_timeout:g} s"
        raise ConnectionFailedError(text) from None
    except (OSError, ValueError) as error:
        raise ConnectionFailedError(f"{address}: {error}") from error
    return Link(address, means, reader, writer, questions)
