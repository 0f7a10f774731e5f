"""The door of a listener: what somebody may do before it has said who it is."""

import asyncio
import contextlib
import socket

import pytest
from raw_peer import HOST, Serve, Wire, until

from lockkeeper.message import openwire
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.server.strangers import DISPLACED, FULL, LATE
from lockkeeper.transport.listener import AddressInUseError, bind

GREETING = framed(openwire.encode(offer(ListenerSettings())))
LOGIN_FRAME_BYTES_MAX = 1 << 16


async def raw_connection(wire: Wire) -> socket.socket:
    """Return a TCP connection that has sent nothing, not even a greeting of TLS."""
    raw = wire.raw_socket()
    await asyncio.get_running_loop().sock_connect(raw, (HOST, wire.port))
    return raw


async def ends(raw: socket.socket) -> bool:
    """Read from a connection until it ends, cleanly or not."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ConnectionError):
        while await loop.sock_recv(raw, 1 << 16):
            pass
    raw.close()
    return True


@pytest.mark.parametrize("size", [0, LOGIN_FRAME_BYTES_MAX + 1, 1 << 31])
def test_a_frame_before_the_handshake_is_refused_by_its_size(serve: Serve, size: int) -> None:
    async def test(wire: Wire) -> None:
        client = await wire.connect()
        client.send(size.to_bytes(4, "big"))
        assert b"frameBytesMax" in await client.rest()
        await until(lambda: not wire.engine.peers)
        wire.assert_nobody_is_left()

    serve(test, protocol="openwire")


def test_what_strangers_send_is_bounded_however_many_there_are(serve: Serve) -> None:
    count = 20

    async def test(wire: Wire) -> None:
        clients = [await wire.connect() for _ in range(count)]
        half = LOGIN_FRAME_BYTES_MAX.to_bytes(4, "big") + b"x" * (LOGIN_FRAME_BYTES_MAX - 1)
        for client in clients:
            client.send(half)
        await until(lambda: len(wire.engine.peers) == count)
        await asyncio.sleep(0.2)
        assert wire.broker.memory.partial <= count * LOGIN_FRAME_BYTES_MAX
        for client in clients:
            client.reset()
        await until(lambda: not wire.engine.peers)
        wire.assert_nobody_is_left()

    serve(test, protocol="openwire")


def test_whoever_says_nothing_goes_at_the_login_timeout(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        silent = await raw_connection(wire)
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await ends(silent)
        # uvloop counts whole milliseconds.
        assert 0.299 <= round(loop.time() - began, 3) < 5
        await until(lambda: not wire.engine.peers)
        assert len(wire.engine.strangers) == 0
        wire.assert_nobody_is_left()

    serve(test, loginTimeout="300ms")


@pytest.mark.parametrize("encryption", ["ssl"], indirect=True)
def test_a_handshake_that_stalls_holds_up_nobody_and_ends(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        stalled = [await raw_connection(wire) for _ in range(50)]
        loop = asyncio.get_running_loop()
        for raw in stalled:
            # The beginning of a record: a handshake of TLS 1.0 or later, 512 bytes.
            await loop.sock_sendall(raw, b"\x16\x03\x01\x02\x00\x01")
        client, _ = await wire.login("anna")
        client.send(b"line\n")
        assert await client.lines(1) == b"line\n"
        await asyncio.gather(*map(ends, stalled))
        await until(lambda: len(wire.engine.peers) == 1)
        client.send(b"line\n")
        assert await client.lines(1) == b"line\n"

    serve(test, loginTimeout="1s")


@pytest.mark.parametrize("encryption", ["ssl"], indirect=True)
@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", GREETING, b"\x00" * 100_000])
def test_whoever_does_not_speak_tls_is_gone_at_once(serve: Serve, data: bytes) -> None:
    async def test(wire: Wire) -> None:
        raw = await raw_connection(wire)
        loop = asyncio.get_running_loop()
        # Its first bytes may be enough.
        with contextlib.suppress(ConnectionError):
            await loop.sock_sendall(raw, data)
        assert await ends(raw)
        await until(lambda: len(wire.engine.strangers) == 0)
        wire.assert_nobody_is_left()

    serve(test, loginTimeout="1h")


def test_the_oldest_stranger_makes_room_for_a_client(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        strangers = [await raw_connection(wire) for _ in range(3)]
        await until(lambda: len(wire.engine.strangers) == 3)
        client, _ = await wire.login("anna")
        assert await ends(strangers[0])
        assert wire.engine.strangers.turned_away == {LATE: 0, DISPLACED: 1, FULL: 0}
        client.send(b"line\n")
        assert await client.lines(1) == b"line\n"
        for raw in strangers[1:]:
            raw.close()

    serve(test, connectionsBeforeLoginMax=3)


def test_one_connection_more_than_there_may_be_is_turned_away(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        clients = [await wire.login(f"n{number}") for number in range(2)]
        # Who is in is no stranger, as soon as somebody looks.
        wire.engine.strangers.abort_late_ones(wire.engine.steady)
        late = await wire.connect()
        assert await late.rest() == b""
        assert sum(wire.engine.strangers.turned_away.values()) == 1
        for client, _ in clients:
            client.send(b"line\n")
            assert await client.lines(1) == b"line\n"

    serve(test, connectionsMax=2)


def test_a_newcomer_to_a_full_broker_does_not_displace_itself(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        for number in range(2):
            await wire.login(f"n{number}")
        late = await wire.connect()
        assert await late.rest() == b""
        assert wire.engine.strangers.turned_away == {LATE: 0, DISPLACED: 0, FULL: 1}
        await until(lambda: len(wire.engine.strangers) == 0)
        assert len(wire.engine.peers) == 2

    serve(test, connectionsMax=2)


def test_a_port_in_use_is_told_by_its_address() -> None:
    async def test() -> None:
        (bound,) = await bind(HOST, 0)
        bound.listen()
        port = bound.getsockname()[1]
        with pytest.raises(AddressInUseError, match=f"listens on {HOST}:{port} already"):
            await bind(HOST, port)
        bound.close()

    asyncio.run(test())


def test_all_addresses_of_a_name_have_one_port_or_none_is_taken() -> None:
    async def test() -> None:
        bound = await bind("localhost", 0)
        addresses = {each.getsockname()[0] for each in bound}
        assert addresses <= {"127.0.0.1", "::1"}
        assert "127.0.0.1" in addresses
        for each in bound:
            each.close()

    asyncio.run(test())
