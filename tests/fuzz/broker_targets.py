"""Target: the client, when a broker says anything at all."""

from random import Random

from fuzzer import Target
from mutations import mutated
from recordings import conversations

from lockkeeper.client.core.delivery import DISPATCH, Delivery, DispatchReader
from lockkeeper.client.core.wire import Wire
from lockkeeper.client.errors import refused
from lockkeeper.client.links.link import LINK_ERRORS
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.client.url import parse_url
from lockkeeper.message import openwire
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.settings import ListenerSettings


def targets() -> list[Target]:
    """Return all of this theme."""
    return [Target("brokers", made, _Client().run, LINK_ERRORS, 0.4)]


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


class _Client:
    """A client that is told what a broker says."""

    def __init__(self) -> None:
        (self._address,) = parse_url("tcp://127.0.0.1:1").addresses

    def run(self, data: bytes) -> None:
        """Take all that is said, bodies and properties, too."""
        options = self._address.options
        settings = ListenerSettings(
            options.frame_bytes_max, options.inactivity_duration, options.inactivity_initial_delay
        )
        wire = Wire(settings, str(self._address), 0.0)
        for half in (data[: len(data) // 2], data[len(data) // 2 :]):
            frames = wire.receive(half, 0.0) if half else []
            reader = DispatchReader(wire.codec) if frames else None
            for frame in frames:
                assert reader is not None
                is_dispatch = frame[0] == DISPATCH
                _take(reader.read(frame) if is_dispatch else wire.codec.decode(frame)[0])


def _take(command: Delivery | openwire.Structure) -> None:
    """Do with a command what a connection does with it, and an application with its message."""
    if isinstance(command, openwire.ExceptionResponse | openwire.ConnectionError):
        str(refused(command.exception))
    if not isinstance(command, Delivery) or not command.has_message:
        return
    message = ReceivedMessage(command, None)  # type: ignore[arg-type]
    repr(message)
    for read in ("body", "properties", "message_id", "destination", "reply_to"):
        try:
            getattr(message, read)
        except MalformedMessageError:
            continue
