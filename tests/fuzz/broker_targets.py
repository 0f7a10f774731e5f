"""Target: the client, when a broker says anything at all; over real sockets."""

import queue
import socket
import threading
from random import Random

from fuzzer import Target
from mutations import mutated
from recordings import conversations

from lockkeeper.client.errors import refused
from lockkeeper.client.link import LINK_ERRORS, Link
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.client.url import parse_url
from lockkeeper.message import openwire
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.protocols.openwire.frames import framed


def targets() -> list[Target]:
    """Return all of this theme."""
    return [Target("brokers", made, _Brokers().run, LINK_ERRORS, 0.4)]


def made(chance: Random) -> bytes:
    """Return what a real broker said, with changes; mostly the handshake is as it was."""
    frames = list(chance.choice(conversations("s2c")))[:60]
    for _ in range(chance.randint(1, 3)):
        at = int(len(frames) * chance.random())
        if frames and (at or chance.random() < 0.3):
            changed = mutated(chance, [frames[at][4:]], changes=2)
            sized = chance.random() < 0.9
            frames[at] = framed(changed) if sized else frames[at][:4] + changed
    return b"".join(frames)


class _Brokers:
    """A socket that says to whoever comes what is next."""

    def __init__(self) -> None:
        self._listening: socket.socket | None = None
        self._said: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def run(self, data: bytes) -> None:
        """Connect, and take all that is said, bodies and properties, too."""
        if self._listening is None:
            self._listening = socket.create_server(("127.0.0.1", 0), backlog=16)
            threading.Thread(target=self._serve, args=(self._listening,), daemon=True).start()
        self._said.put(data)
        port = self._listening.getsockname()[1]
        (address,) = parse_url(f"tcp://127.0.0.1:{port}").addresses
        link = Link(address)
        try:
            while True:
                for command in link.receive():
                    _take(command)
        finally:
            link.close()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            peer, _ = listening.accept()
            with peer:
                try:
                    peer.sendall(self._said.get())
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(65536):
                        pass
                except OSError:
                    continue


def _take(command: openwire.Structure) -> None:
    """Do with a command what a connection does with it, and an application with its message."""
    if isinstance(command, openwire.ExceptionResponse | openwire.ConnectionError):
        str(refused(command.exception))
    if not isinstance(command, openwire.MessageDispatch) or command.message is None:
        return
    message = ReceivedMessage(command, None)  # type: ignore[arg-type]
    repr(message)
    for read in ("body", "properties", "message_id", "destination", "reply_to"):
        try:
            getattr(message, read)
        except MalformedMessageError:
            continue
