"""A peer that says exactly what a test wants, over a real socket."""

import socket
from types import TracebackType

from lockkeeper.message import openwire
from lockkeeper.message.openwire import BaseCommand, Structure, WireFormatInfo
from lockkeeper.message.primitives import Long, Value

SECONDS_MAX = 10


class ScriptedPeer:
    """Listens on loopback and talks OpenWire of one version, one connection at a time."""

    def __init__(self, version: int = 12, inactivity: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(SECONDS_MAX)
        self._codec = openwire.codec_for(version, False)
        self._inactivity = inactivity
        self._connection: socket.socket | None = None

    @property
    def address(self) -> str:
        """The URL to dial, without options."""
        return f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def connection(self) -> socket.socket:
        """The connection being served."""
        assert self._connection is not None
        return self._connection

    def accept(self) -> None:
        """Take the next connection, without a word."""
        self._connection, _ = self._listener.accept()
        self._connection.settimeout(SECONDS_MAX)

    def shake_hands(self) -> WireFormatInfo:
        """Take the next connection and agree; return what the client offered."""
        self.accept()
        properties: dict[str, Value] = {
            "MaxInactivityDuration": Long(self._inactivity),
            "MaxInactivityDurationInitalDelay": Long(0),
        }
        self.send(WireFormatInfo(version=self._codec.version, properties=properties))
        info = self.read()
        assert isinstance(info, WireFormatInfo)
        return info

    def read(self) -> Structure:
        """Return the next command. Raises EOFError when there is none."""
        size = int.from_bytes(self._exactly(4), "big")
        return self._codec.decode(self._exactly(size))[0]

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.connection.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def send(self, command: Structure) -> None:
        """Send a command."""
        body = self._codec.encode(command)
        self.connection.sendall(len(body).to_bytes(4, "big") + body)

    def answer(self, command: Structure) -> None:
        """Say that a command is done, if it wants to know."""
        assert isinstance(command, BaseCommand)
        if command.response_required:
            self.send(openwire.Response(correlation_id=command.command_id))

    def refuse(self, command: Structure, java_class: str, message: str) -> None:
        """Answer a command with an exception."""
        assert isinstance(command, BaseCommand)
        self.send(
            openwire.ExceptionResponse(
                correlation_id=command.command_id,
                exception=openwire.Throwable(java_class, message),
            )
        )

    def serve(self, count: int) -> list[Structure]:
        """Answer the next *count* commands and return them."""
        commands = []
        for _ in range(count):
            command = self.read()
            self.answer(command)
            commands.append(command)
        return commands

    def serve_until(self, kind: type[Structure]) -> list[Structure]:
        """Answer commands up to the first of *kind*, which is not answered; return all."""
        commands = [self.read()]
        while not isinstance(commands[-1], kind):
            self.answer(commands[-1])
            commands.append(self.read())
        return commands

    def hang_up(self) -> None:
        """End the connection."""
        self.connection.close()

    def __enter__(self) -> "ScriptedPeer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._connection is not None:
            self._connection.close()
        self._listener.close()
