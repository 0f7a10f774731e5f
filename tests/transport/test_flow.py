"""Flow of a connection: a peer that does not read is not sent more, and then not read from."""

import asyncio

import pytest
from echo_session import PREFETCH
from raw_peer import Serve, Wire, received, settled, until, waiting

from lockkeeper.broker.connections import STALLED_BYTES_MAX
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.transport.peer import PIECE_BYTES
from lockkeeper.transport.write_buffers import WRITE_BUFFER_BYTES, WRITE_BUFFERS_BYTES

LINE = b"x" * 9_999 + b"\n"
MEMORY_BYTES = 2 << 20
SCARCE = BrokerSettings(system_usage=SystemUsage(memory_usage=MemoryUsage(limit=MEMORY_BYTES)))


def test_no_more_than_a_buffer_waits_for_a_peer_that_reads_nothing(serve: Serve) -> None:
    count = 600

    async def test(wire: Wire) -> None:
        client, peer = await wire.login("anna")
        client.send(LINE * count)
        await until(lambda: wire.enqueued("anna") == count)
        # The last burst may go beyond the mark at which dispatch stops, and TLS adds its own.
        most = (WRITE_BUFFER_BYTES + PREFETCH * len(LINE)) * 1.01
        assert WRITE_BUFFER_BYTES < await settled(lambda: waiting(peer)) <= most
        assert peer.session.connection.congested
        assert await client.lines(count) == LINE * count
        await until(lambda: not peer.session.connection.congested and waiting(peer) == 0)

    serve(test)


def test_a_peer_that_reads_nothing_holds_up_nobody(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        greedy, peer = await wire.login("greedy")
        other, _ = await wire.login("other")
        greedy.send(LINE * 1200)
        await until(lambda: peer.session.connection.congested)
        for number in range(100):
            line = b"%d\n" % number
            other.send(line)
            assert await other.lines(1) == line
        assert peer.session.connection.congested

    serve(test)


def test_without_memory_a_sender_is_not_read_from_until_there_is_some(serve: Serve) -> None:
    count = 1_500

    async def test(wire: Wire) -> None:
        client, sender = await wire.login("anna+sender")
        client.send(LINE * count)
        await until(lambda: sender.is_paused and sender.session.connection.stalled)
        taken = await settled(lambda: received(sender))
        assert MEMORY_BYTES < taken < MEMORY_BYTES + STALLED_BYTES_MAX + 8 * PIECE_BYTES
        reader, _ = await wire.login("anna")
        assert await reader.lines(count) == LINE * count
        await until(lambda: not sender.is_paused)
        assert wire.enqueued("anna") == count

    serve(test, settings=SCARCE)


def test_a_sender_that_is_not_read_from_can_be_ended(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        client, sender = await wire.login("anna+sender")
        client.send(LINE * 1_500)
        await until(lambda: sender.is_paused and sender.session.connection.stalled)
        await settled(lambda: received(sender))
        sender.abort()
        await until(lambda: not wire.engine.peers)
        assert await client.rest() == b""
        wire.assert_nobody_is_left()

    serve(test, settings=SCARCE)


def test_a_flood_of_one_peer_lets_the_lines_of_another_through(serve: Serve) -> None:
    flood = 20_000_000

    async def test(wire: Wire) -> None:
        loud, peer = await wire.login("loud")
        quiet, _ = await wire.login("quiet")
        loud.send(b"x" * 99 + b"\n")
        loud.send((b"x" * 99 + b"\n") * (flood // 100))
        await until(lambda: received(peer) > 0)
        for number in range(10):
            quiet.send(b"%d\n" % number)
            assert await quiet.lines(1) == b"%d\n" % number
        assert received(peer) < flood // 2

    serve(test)


def test_many_peers_share_what_may_wait(serve: Serve) -> None:
    count = 64

    async def test(wire: Wire) -> None:
        clients = [await wire.login(f"n{number}") for number in range(count)]
        share = WRITE_BUFFERS_BYTES // count
        # The shares are for somewhat more peers than there are.
        for client, peer in clients:
            assert share // 2 < peer.session.connection.burst_bytes <= share
            client.send(LINE * 120)
        await until(lambda: all(peer.session.connection.congested for _, peer in clients))
        together = await settled(lambda: sum(waiting(peer) for _, peer in clients))
        assert together <= WRITE_BUFFERS_BYTES + count * PREFETCH * len(LINE)
        for client, _ in clients[1:]:
            client.reset()
        await until(lambda: len(wire.engine.peers) == 1)
        assert clients[0][1].session.connection.burst_bytes == WRITE_BUFFER_BYTES
        assert await clients[0][0].lines(120) == LINE * 120

    serve(test)


def test_reading_stops_and_goes_on_with_what_is_asked_of_the_transport(serve: Serve) -> None:
    async def test(wire: Wire) -> None:
        client, peer = await wire.login("anna")
        for _ in range(20):
            peer.rest(True)
            before = await settled_soon(wire, peer)
            client.send(b"line\n")
            await asyncio.sleep(0.02)
            assert received(peer) == before
            peer.rest(False)
            assert await client.lines(1) == b"line\n"

    async def settled_soon(wire: Wire, peer: object) -> int:
        await asyncio.sleep(0.01)
        (only,) = wire.engine.peers
        assert only is peer
        return received(only)

    serve(test)


@pytest.mark.parametrize(
    "size", [1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES]
)
def test_a_line_of_any_size_comes_back(serve: Serve, size: int) -> None:
    async def test(wire: Wire) -> None:
        client, _ = await wire.login("anna")
        line = b"y" * size + b"\n"
        client.send(line * 3)
        assert await client.lines(3) == line * 3

    serve(test)
