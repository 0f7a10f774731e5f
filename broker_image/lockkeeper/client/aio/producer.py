"""Producers for asyncio."""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Unpack

from lockkeeper.client.aio.closing import Closing
from lockkeeper.client.aio.driving import drive
from lockkeeper.client.blobs import Blob
from lockkeeper.client.core.requests import Request
from lockkeeper.client.drafting import WINDOW_MESSAGES, Drafting, SendOptions, marshal
from lockkeeper.client.links.clock import moment
from lockkeeper.client.messages import DestinationName, ReceivedMessage
from lockkeeper.message.bodies import Body
from lockkeeper.message.primitives import Value


class Producer(Drafting, Closing):
    """Sends messages, to one destination or to any; made by `Session.producer`.

    `persistent`, `priority` (0 to 9) and `time_to_live` (seconds, None for ever) hold for every
    message that does not say otherwise, and may be changed.
    """

    async def send(
        self,
        body: Body | Blob,
        properties: Mapping[str, Value] | None = None,
        *,
        destination: DestinationName | None = None,
        persistent: bool | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        correlation_id: str | None = None,
        reply_to: DestinationName | None = None,
        type: str | None = None,
        group_id: str | None = None,
        group_sequence: int = 0,
        timeout: float | None = None,
    ) -> str:
        """Send a text, bytes, map, stream (list), object, blob or empty (None) message.

        Returns its id. Outside a transaction a persistent message is on the broker's disk then, one
        that is not persistent is on its way. Within a transaction, errors surface at the commit.
        Raises ValueError for what OpenWire cannot carry, else a MessagingError:
        RequestTimedOutError after *timeout* seconds, when nobody knows whether it was sent.
        """
        draft = self.draft(
            body, properties, destination, persistent, priority, time_to_live, correlation_id,
            reply_to, type, group_id, group_sequence,
        )  # fmt: skip
        core, runner = self.core, self._runner
        if core.wants_answer(draft.persistent) or not core.has_room:
            return await drive(runner, core.send(draft, moment()), timeout)
        with runner.lock:
            message_id = core.send_freely(draft)
            is_written = runner.flush(False)
        if is_written:
            # Whoever sends without a pause must not keep all others from their turn.
            await asyncio.sleep(0)
        return message_id

    async def send_async(
        self,
        body: Body | Blob,
        properties: Mapping[str, Value] | None = None,
        *,
        timeout: float | None = None,
        **options: Unpack[SendOptions],
    ) -> "asyncio.Future[str]":
        """Send a message, and return a future of its id, which is done when it is confirmed.

        The *options* are those of `send`, and so is when a message is confirmed; messages keep
        their order. This waits for room only, *timeout* seconds at most: RequestTimedOutError.
        The future raises what `send` would raise. Cancelling it does not take the message back.
        """
        draft = self.draft(body, properties, **options)
        sent = await drive(self._runner, self.core.begin(draft, moment()), timeout)
        return asyncio.ensure_future(drive(self._runner, self.core.end_sending(sent)))

    async def forward(
        self,
        received: ReceivedMessage,
        *,
        destination: DestinationName | None = None,
        without: Collection[str] = (),
        extra: Mapping[str, Value] | None = None,
        timeout: float | None = None,
    ) -> str:
        """Send a received message on, under a new id and without an expiry; return the id.

        Its body, headers and properties stay, except for those properties named in *without*;
        those of *extra* are added.
        Raises like `send`.
        """
        message = self.forwarded(received, destination, without, extra)
        return await drive(self._runner, self.core.send_message(message, moment()), timeout)

    async def send_many(
        self,
        bodies: Iterable[Body | Blob],
        properties: Mapping[str, Value] | None = None,
        window: int = WINDOW_MESSAGES,
        *,
        timeout: float | None = None,
    ) -> int:
        """Send many messages alike, with up to *window* on the way at once; return how many.

        All persistent ones are on the broker's disk when this returns. Raises like `send`, at
        the first that fails; those after it may have been sent.
        """
        marshalled = marshal(properties)
        waiting: deque[Request] = deque()
        count = 0
        for body in bodies:
            draft = self.draft(body, marshalled)
            await drive(
                self._runner, self.core.send_in_window(draft, waiting, window, moment()), timeout
            )
            count += 1
        await drive(self._runner, self.core.confirm(waiting, moment()), timeout)
        return count

    async def close(self) -> None:
        """Tell the broker that the producer is no more."""
        self.close_at_once()
