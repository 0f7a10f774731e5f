"""Connections, as the engine and a client see them: bytes arrive whole, in order, and once."""

import asyncio
import ssl
from functools import partial

import pytest
from raw_peer import HOST, UNREAD_BYTES, Serve, Wire, received, until, waiting

from lockkeeper.transport.peer import Peer

TALK = b"anna\none\n\ntwo\n" + b"x" * 40 + b"\n"
ECHOED = TALK.split(b"\n", 1)[1]
LINES = ECHOED.count(b"\n")


def has_received(peer: Peer, size: int) -> bool:
    """Tell whether the transport has brought so many bytes."""
    return received(peer) == size


def test_what_arrives_cut_at_any_byte_is_as_it_was_sent(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        for at in range(1, len(TALK)):
            client = await wire.connect()
            await until(lambda: len(wire.engine.peers) == 1)
            (peer,) = wire.engine.peers
            client.send(TALK[:at])
            await until(partial(has_received, peer, at))
            client.send(TALK[at:])
            assert await client.lines(LINES) == ECHOED, f"cut at byte {at}"
            client.reset()
            await until(lambda: not wire.engine.peers)
        wire.assert_nobody_is_left()

    serve(test)


@pytest.mark.parametrize("ends_politely", [True, False], ids=["politely", "FIN"])
def test_what_came_before_the_end_is_carried_out(serve: Serve, ends_politely: bool) -> None:
    lines = 400

    async def test(wire: Wire) -> None:
        # Who is sent something after the end answers with a reset, and a reset ends all at once.
        client, _ = await wire.login("anna+sender")
        # So much fits into the kernel's buffers: the end comes right behind it.
        client.send((b"x" * 99 + b"\n") * lines)
        if ends_politely:
            client.writer.close()
        else:
            client.end_sending()
        await until(lambda: not wire.engine.peers)
        assert wire.enqueued("anna") == lines
        wire.assert_nobody_is_left()

    serve(test)


def test_what_is_not_carried_out_yet_is_when_the_connection_is_lost(serve: Serve) -> None:
    lines = 3_000

    async def test(wire: Wire) -> None:
        _, peer = await wire.login("anna")
        peer.data_received((b"x" * 99 + b"\n") * lines)
        assert peer.session.unread > 0
        peer.abort()
        await until(lambda: not wire.engine.peers)
        assert wire.enqueued("anna") == lines
        wire.assert_nobody_is_left()

    serve(test)


def test_half_a_line_before_a_reset_leaves_nothing(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        client, peer = await wire.login("anna")
        client.send(b"whole\nhal")
        await until(lambda: received(peer) == len(b"anna\nwhole\nhal"))
        client.reset()
        await until(lambda: not wire.engine.peers)
        assert wire.enqueued("anna") == 1
        wire.assert_nobody_is_left()

    serve(test)


def test_a_reset_in_the_middle_of_a_write_harms_nobody_else(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        greedy, peer = await wire.login("greedy")
        other, _ = await wire.login("other")
        greedy.send((b"x" * 9_999 + b"\n") * 200)
        await until(lambda: waiting(peer) > 0)
        greedy.reset()
        await until(lambda: len(wire.engine.peers) == 1)
        other.send(b"still here\n")
        assert await other.lines(1) == b"still here\n"
        other.reset()
        await until(lambda: not wire.engine.peers)
        wire.assert_nobody_is_left()

    serve(test)


def test_what_waits_is_sent_before_a_connection_is_closed(serve: Serve) -> None:
    line, count = b"x" * 9_999 + b"\n", 90

    async def test(wire: Wire) -> None:
        client, peer = await wire.login("anna")
        client.send(line * count)
        await until(lambda: wire.enqueued("anna") == count and waiting(peer) > 100_000)
        peer.close()
        assert await client.rest() == line * count
        await until(lambda: not wire.engine.peers)
        wire.assert_nobody_is_left()

    serve(test)


def test_a_peer_that_takes_nothing_cannot_put_off_its_end(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        client, peer = await wire.login("anna")
        client.send((b"x" * 99_999 + b"\n") * 40)
        await until(lambda: peer.session.connection.congested)
        peer.close()
        await until(lambda: not wire.engine.peers, 2)
        assert len(await client.rest()) < 40 * 100_000
        wire.assert_nobody_is_left()

    serve(test)


def test_many_peers_get_each_its_own_lines(serve: Serve) -> None:
    peers, rounds = 200, 5

    async def test(wire: Wire) -> None:
        async def talk(number: int) -> None:
            client = await wire.connect()
            said = [b"%d says %d\n" % (number, each) for each in range(rounds)]
            client.send(b"n%d\n" % number + b"".join(said))
            assert await client.lines(rounds) == b"".join(said)
            client.writer.close()

        await asyncio.gather(*map(talk, range(peers)))
        await until(lambda: not wire.engine.peers)
        assert sum(wire.enqueued(f"n{number}") for number in range(peers)) == peers * rounds
        wire.assert_nobody_is_left()

    serve(test)


@pytest.mark.parametrize("encryption", ["ssl"], indirect=True)
def test_records_of_tls_may_come_byte_by_byte(
    serve: Serve, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    async def test(wire: Wire) -> None:
        loop, raw = asyncio.get_running_loop(), wire.raw_socket()
        await loop.sock_connect(raw, (HOST, wire.port))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = contexts[1].wrap_bio(incoming, outgoing, server_hostname=HOST)

        async def send() -> None:
            for byte in outgoing.read():
                await loop.sock_sendall(raw, bytes((byte,)))
                await asyncio.sleep(0)

        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await send()
                incoming.write(await loop.sock_recv(raw, UNREAD_BYTES))
        for line in TALK.splitlines(keepends=True):
            tls.write(line)
        await send()
        heard = b""
        while len(heard) < len(ECHOED):
            try:
                heard += tls.read(UNREAD_BYTES)
            except ssl.SSLWantReadError:
                incoming.write(await loop.sock_recv(raw, UNREAD_BYTES))
        assert heard == ECHOED
        raw.close()
        await until(lambda: not wire.engine.peers)
        wire.assert_nobody_is_left()

    serve(test)
