"""Commands out, answers and deliveries in, over one link after another.

One thread reads, and finds the next broker when one is lost; then it repeats what the new one
must know, as openwire.md section 7.8 says: connection, temporary destinations, sessions,
producers, consumers, and every command that has no answer yet, all with their old ids.

The generation counts the links. What belongs to one link only, such as an acknowledgement or a
part of a transaction, names its generation and is dropped when that has passed.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol, TypeAlias

from lockkeeper.client.errors import (
    ConnectionFailedError,
    IllegalStateError,
    MessagingError,
    RequestTimedOutError,
    SecurityError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    refused,
)
from lockkeeper.client.failover import Reconnector
from lockkeeper.client.link import LINK_ERRORS, Link, UnsentError
from lockkeeper.client.url import BrokerUrl
from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination
from lockkeeper.message.openwire import BaseCommand, Response, Structure
from lockkeeper.protocols.openwire.frames import framed

BUFFER_BYTES = 64 * 1024
INTRODUCTION_SECONDS = 30.0
JOIN_SECONDS = 5.0
NUDGE_SECONDS = 1.0
_LOG = logging.getLogger(__name__)
Key: TypeAlias = openwire.ClientObjectId | Destination
"""What a command that must be repeated has made, and its removal ends."""


class Listener(Protocol):
    """Receiver of the broker's commands; the reading thread calls it, so it must not wait."""

    def dispatched(self, dispatch: openwire.MessageDispatch) -> None:
        """A consumer gets a message, or is told that there is none."""

    def controlled(self, control: openwire.ConsumerControl) -> None:
        """The broker changes a consumer."""

    def reported(self, error: MessagingError) -> None:
        """The broker reports an error that belongs to no request."""

    def interrupted(self, generation: int) -> None:
        """The link is lost; *generation* is that of the next one."""

    def refused(self, command: BaseCommand, error: MessagingError) -> None:
        """The new broker refuses what the old one had accepted."""

    def ended(self, error: MessagingError | None) -> None:
        """There will be no further link; no error when the application wanted that."""


class Pending:
    """A command whose answer is awaited."""

    __slots__ = (
        "_deadline",
        "_done",
        "_error",
        "_forget",
        "_response",
        "command",
        "repeatable",
    )

    def __init__(
        self,
        command: BaseCommand,
        repeatable: bool,
        deadline: float | None,
        forget: "Callable[[Pending], None]",
    ) -> None:
        """*forget* is called past the *deadline* (of `time.monotonic`)."""
        self.command = command
        self.repeatable = repeatable
        self._deadline = deadline
        self._forget = forget
        self._done = threading.Event()
        self._response: Response | None = None
        self._error: MessagingError | None = None

    def settle(self, response: Response) -> None:
        """Give the answer to whoever waits for it."""
        if isinstance(response, openwire.ExceptionResponse):
            self._error = refused(response.exception)
        self._response = response
        self._done.set()

    def fail(self, error: MessagingError) -> None:
        """Give up waiting."""
        self._error = error
        self._done.set()

    def result(self) -> Response:
        """Wait for the answer. Raises RefusedError or what ended the connection.

        After RequestTimedOutError nobody knows whether the command was carried out.
        """
        deadline = self._deadline
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._done.wait(left):
            self._forget(self)
            raise RequestTimedOutError(f"no answer to {type(self.command).__name__} in time")
        if self._error is not None:
            raise self._error
        assert self._response is not None
        return self._response


class Transport:
    """The conversation with whichever broker is there; any thread may use it."""

    def __init__(self, url: BrokerUrl, listener: Listener) -> None:
        self.generation = 0
        self.is_fault_tolerant = url.failover is not None
        timeout = url.failover.timeout if url.failover else -1
        self._patience = timeout / 1000 if timeout > 0 else None
        self._timeouts = url.timeouts
        self._listener = listener
        self._reconnector = Reconnector(url)
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._link: Link | None = None
        self._introduced: Link | None = None
        self._error: MessagingError | None = None
        self._last_command = 0
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._pending: dict[int, Pending] = {}
        self._tracked: dict[Key, BaseCommand] = {}
        self._thread = threading.Thread(target=self._run, name="lockkeeper-reader", daemon=True)

    def start(self) -> None:
        """Begin to look for a broker."""
        self._thread.start()

    @property
    def address(self) -> str | None:
        """The broker in use, None while there is none."""
        link = self._link
        return None if link is None else str(link.address)

    # Sending

    def request(
        self,
        command: BaseCommand,
        generation: int | None = None,
        key: Key | None = None,
        repeatable: bool = True,
    ) -> Pending:
        """Send a command that wants an answer; repeated after a failover if *repeatable*.

        A command with a *key* is one of those that a new broker must know. Raises
        TransactionRolledBackError when its generation has passed, RequestTimedOutError when
        nothing could be sent for too long.
        """
        command.response_required = True
        self._hold(command)
        try:
            link = self._link_of(generation)
            if link is None:
                raise TransactionRolledBackError("the connection was lost within the transaction")
            deadline = self._deadline(command)
            frame = self._encode(link, command)
            pending = Pending(command, repeatable, deadline, self._forget)
            self._pending[command.command_id] = pending
            if key is not None:
                self._tracked[key] = command
            try:
                self._write(link, frame, False, deadline)
            except RequestTimedOutError:
                self._forget(pending)
                if key is not None:
                    del self._tracked[key]
                raise
        finally:
            self._changed.release()
        return pending

    def _forget(self, pending: Pending) -> None:
        """Wait for an answer no longer."""
        self._pending.pop(pending.command.command_id, None)

    def _deadline(self, command: BaseCommand) -> float | None:
        """Return when a call must be over that sends *command* now; None for never."""
        is_message = isinstance(command, openwire.Message)
        timeout = self._timeouts.send if is_message else self._timeouts.request
        return time.monotonic() + timeout / 1000 if timeout else None

    def _hold(self, command: BaseCommand) -> None:
        """Take the lock; RequestTimedOutError when another thread keeps it for too long."""
        if self._changed.acquire(blocking=False):
            return
        deadline = self._deadline(command)
        left = -1 if deadline is None else deadline - time.monotonic()
        if not self._changed.acquire(timeout=left):
            raise RequestTimedOutError("another thread waits for the broker to read")

    def oneway(
        self,
        command: BaseCommand,
        generation: int | None = None,
        key: Key | None = None,
        buffered: bool = False,
    ) -> bool:
        """Send a command that wants no answer; False when its generation has passed.

        A *buffered* one may wait for the next that is not.
        """
        while True:
            self._hold(command)
            try:
                link = self._link_of(generation)
                if link is None:
                    return False
                frame = self._encode(link, command)
                sent = self._write(link, frame, buffered, self._deadline(command))
                if key is not None:
                    self._tracked[key] = command
                if sent or key is not None:
                    return True
            finally:
                self._changed.release()

    def remove(self, key: Key, command: BaseCommand) -> None:
        """Tell the broker, if there is one, that something is no more."""
        self._hold(command)
        try:
            if self._tracked.pop(key, None) is not None and self._link is not None:
                frame = self._encode(self._link, command)
                self._write(self._link, frame, False, self._deadline(command))
        finally:
            self._changed.release()

    def _link_of(self, generation: int | None) -> Link | None:
        """Wait for a link; None when that of *generation* has passed."""
        while generation in (None, self.generation) and self._link is None:
            if self._error is not None:
                raise self._error
            if self._stopping.is_set():
                raise IllegalStateError("the connection is closed")
            if not self._changed.wait(self._patience):
                raise RequestTimedOutError(f"no broker for {self._patience:g} s")
        return self._link if generation in (None, self.generation) else None

    def _encode(self, link: Link, command: BaseCommand) -> bytes:
        command.command_id = self._last_command + 1
        frame = framed(link.codec.encode(command))
        self._last_command += 1
        return frame

    def _write(self, link: Link, frame: bytes, buffered: bool, deadline: float | None) -> bool:
        """Return False, with the link broken, when the frame cannot be sent.

        Raises RequestTimedOutError when it was not by the *deadline*: then what is left of it
        goes with the next one, unless that is all of it.
        """
        self._out.append(frame)
        self._out_bytes += len(frame)
        if buffered and self._out_bytes < BUFFER_BYTES:
            return True
        data = b"".join(self._out)
        self._forget_buffered()
        try:
            link.send(data, deadline)
        except UnsentError as error:
            left = error.left
            if len(left) >= len(frame):
                left = left[: len(left) - len(frame)]
            self._out, self._out_bytes = [left], len(left)
            raise RequestTimedOutError(f"nothing could be sent in time: {error}") from error
        except OSError:
            self._break(link)
            return False
        return True

    def _forget_buffered(self) -> None:
        self._out.clear()
        self._out_bytes = 0

    def _break(self, link: Link) -> None:
        """End a link, once; the reading thread finds out and looks for the next one."""
        link.shut_down()
        with self._changed:
            if self._link is link:
                self._link = None
                self.generation += 1
                self._forget_buffered()

    # The reading thread

    def _run(self) -> None:
        error: MessagingError | None = None
        try:
            while not self._stopping.is_set():
                link = self._reconnector.connect(self.generation == 0, self._stopping)
                if link is not None:
                    self._serve(link)
        except MessagingError as failure:
            error = failure
        except Exception as failure:
            error = ConnectionFailedError(f"the connection ended unexpectedly: {failure!r}")
            error.__cause__ = failure
        finally:
            self._end(error)

    def _serve(self, link: Link) -> None:
        """Use one link until it is lost. Raises SecurityError when it never will be of use."""
        try:
            self._introduce(link)
            while not self._stopping.is_set():
                for command in link.receive():
                    self._receive(command, link)
                if link.is_silent():
                    self._keep_alive(link)
        except LINK_ERRORS as error:
            self._reconnector.lose(link.address, time.monotonic() - link.opened, error)
        finally:
            self._break(link)
            self._listener.interrupted(self.generation)
            self._fail_unrepeatable()
            link.close()

    def _introduce(self, link: Link) -> None:
        """Tell a broker all that the one before knew, and let everyone go on. OSError."""
        with self._changed:
            commands = self._to_repeat()
            encode = link.codec.encode
            data = b"".join(framed(encode(command)) for command in commands)
            self._introduced = link
            link.send(data, time.monotonic() + INTRODUCTION_SECONDS)
            self._link = link
            if self._stopping.is_set():
                link.shut_down()
            self._changed.notify_all()

    def _to_repeat(self) -> list[Structure]:
        commands: list[Structure] = []
        if self._tracked:
            commands.append(openwire.ConnectionControl(fault_tolerant=True))
        known = set()
        for command in self._tracked.values():
            known.add(command.command_id)
            if isinstance(command, openwire.ConnectionInfo):
                command = replace(command, failover_reconnect=True)
            commands.append(command)
        for number, pending in self._pending.items():
            if number not in known:
                commands.append(pending.command)
        return commands

    def _receive(self, command: Structure, link: Link) -> None:
        match command:
            case openwire.MessageDispatch():
                self._listener.dispatched(command)
            case Response():
                self._settle(command)
            case openwire.KeepAliveInfo(response_required=True):
                self._keep_alive(link)
            case openwire.ConnectionError():
                self._listener.reported(refused(command.exception))
            case openwire.ConsumerControl():
                self._listener.controlled(command)

    def _settle(self, response: Response) -> None:
        pending = self._pending.pop(response.correlation_id, None)
        if isinstance(response, openwire.ExceptionResponse):
            self._forget_refused(response, repeated=pending is None)
        if pending is not None:
            pending.settle(response)

    def _forget_refused(self, response: openwire.ExceptionResponse, repeated: bool) -> None:
        error = refused(response.exception)
        with self._changed:
            found = [
                (key, command)
                for key, command in self._tracked.items()
                if command.command_id == response.correlation_id
            ]
            for key, command in found:
                if not (repeated and isinstance(command, openwire.ConnectionInfo)):
                    del self._tracked[key]
        for _, command in found if repeated else []:
            if isinstance(error, SecurityError):
                raise error
            if isinstance(command, openwire.ConnectionInfo):
                text = f"the broker does not take the connection back: {error}"
                raise ConnectionResetError(text)
            self._listener.refused(command, error)

    def _keep_alive(self, link: Link) -> None:
        """Send a sign of life, unless a sender holds the link and so gives one.

        The reading thread never waits for a broker to read.
        """
        if self._changed.acquire(blocking=False):
            try:
                frame = framed(link.codec.encode(openwire.KeepAliveInfo()))
                self._write(link, frame, False, time.monotonic())
            except RequestTimedOutError:
                pass
            finally:
                self._changed.release()

    def _fail_unrepeatable(self) -> None:
        with self._changed:
            found = [number for number, each in self._pending.items() if not each.repeatable]
            lost = [self._pending.pop(number) for number in found]
        for pending in lost:
            pending.fail(
                TransactionInDoubtError("the connection was lost before the outcome was known")
            )

    # The end

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Close things, for as long as `Timeouts.close` says; then everything is cut off."""
        watch = threading.Timer(self._timeouts.close / 1000, self._cut_off)
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def close(self, farewell: BaseCommand) -> None:
        """End the conversation, with a *farewell* and its answer if a broker is there."""
        try:
            self._hold(farewell)
            try:
                has_broker = self._link is not None and not self._stopping.is_set()
                pending = self.request(farewell, repeatable=False) if has_broker else None
            finally:
                self._changed.release()
            if pending is not None:
                pending.result()
                self.oneway(openwire.ShutdownInfo(), self.generation)
        except MessagingError as error:
            _LOG.warning("closing a connection: %s", error)
        self.stop()

    def stop(self) -> None:
        """End the conversation at once and wait for the reading thread."""
        self._cut_off()
        if threading.current_thread() is not self._thread:
            self._thread.join(JOIN_SECONDS)

    def _cut_off(self) -> None:
        """Have every thread that waits wake up with an error; asks for no lock that one keeps."""
        self._stopping.set()
        for link in (self._link, self._introduced):
            if link is not None:
                link.shut_down()
        # Whoever kept the lock was sending, and is woken up by that.
        if self._changed.acquire(timeout=NUDGE_SECONDS):
            self._changed.notify_all()
            self._changed.release()
        for pending in [*self._pending.values()]:
            pending.fail(IllegalStateError("the connection is closed"))

    def _end(self, error: MessagingError | None) -> None:
        with self._changed:
            self._error = error or IllegalStateError("the connection is closed")
            left = list(self._pending.values())
            self._pending.clear()
            self._changed.notify_all()
        for pending in left:
            pending.fail(self._error)
        self._listener.ended(error)
