"""A relay between a client and a broker: it records what both say, and cuts their connection."""

import socket
import threading
from collections.abc import Callable

from lockkeeper.message.openwire import Structure, codec_for

READ_BYTES = 65536
Limits = Callable[[int], "int | None"]


class Relay:
    """Listens on loopback, and passes on what comes, to a broker and back.

    `sent` and `told` have the bytes of clients and brokers of each connection so far.
    """

    def __init__(
        self, port: int, cuts_at: "Limits | None" = None, silences_at: "Limits | None" = None
    ) -> None:
        """*cuts_at* tells for each connection, counted from 0, where it is cut, if at all.

        That is after so many bytes of the client; with *silences_at* after so many of the broker.
        """
        self.sent: list[bytearray] = []
        self.told: list[bytearray] = []
        self._port = port
        self._cuts_at = cuts_at
        self._silences_at = silences_at
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The URL to dial instead of the broker's."""
        return f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self._port), 5)
            except OSError:
                client.close()
                continue
            # A broker may be silent for as long as it likes.
            broker.settimeout(None)
            with self._lock:
                self._open += [client, broker]
                number = len(self.sent)
                self.sent.append(bytearray())
                self.told.append(bytearray())
            limits = [at and at(number) for at in (self._cuts_at, self._silences_at)]
            for source, target, record, most in (
                (client, broker, self.sent[-1], limits[0]),
                (broker, client, self.told[-1], limits[1]),
            ):
                threading.Thread(
                    target=self._pass_on, args=(source, target, record, most), daemon=True
                ).start()

    def _pass_on(
        self, source: socket.socket, target: socket.socket, record: bytearray, most: int | None
    ) -> None:
        try:
            while data := source.recv(READ_BYTES):
                left = len(data) if most is None else max(0, most - len(record))
                record += data[:left]
                target.sendall(data[:left])
                if left < len(data):
                    break
        except OSError:
            pass
        for each in (source, target):
            _end(each)

    def cut(self) -> None:
        """End all connections there are."""
        with self._lock:
            found, self._open = self._open, []
        for each in found:
            _end(each)

    def close(self) -> None:
        """End everything."""
        _end(self._listening)
        self._listening.close()
        self.cut()

    def commands(self, connection: int = 0, version: int = 12) -> list[Structure]:
        """Return what a client has said, WireFormatInfo first."""
        return commands_in(bytes(self.sent[connection]), version)

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def commands_in(data: bytes, version: int = 12) -> list[Structure]:
    """Return the commands of whole frames."""
    codec = codec_for(version, False)
    ends = frame_ends(data)
    return [
        codec.decode(data[begin + 4 : end])[0] for begin, end in zip([0, *ends], ends, strict=False)
    ]


def frame_ends(data: bytes) -> list[int]:
    """Return where each whole frame ends."""
    ends, position = [], 0
    while position + 4 <= len(data):
        position += 4 + int.from_bytes(data[position : position + 4], "big")
        if position > len(data):
            break
        ends.append(position)
    return ends


def _end(each: socket.socket) -> None:
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
