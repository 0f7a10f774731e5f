"""Dialling, where the system does what one would not think of."""

import asyncio
import socket
import time
from typing import Any

import pytest

from lockkeeper.client.links.dialling import open_socket


class LoopOfItself(asyncio.SelectorEventLoop):
    """Gives each socket the port that it dials, as Linux sometimes does when it looks for one."""

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        sock.bind(address)
        await super().sock_connect(sock, address)


def test_a_socket_that_reaches_itself_has_reached_nobody_and_lets_go_of_the_port() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    loop = LoopOfItself()
    try:
        with pytest.raises(ConnectionRefusedError):
            loop.run_until_complete(open_socket("127.0.0.1", port))
    finally:
        loop.close()
    with socket.create_server(("127.0.0.1", port)) as server:
        assert server.getsockname()[1] == port


def test_a_dial_whose_packet_is_lost_is_made_again_before_linux_would() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        where = server.getsockname()
        # Whoever dials when the queue is full gets no answer, and Linux asks again after a second.
        with socket.create_connection(where):
            began = time.monotonic()
            dialled = asyncio.run(_dial_while_the_queue_is_full(server))
            assert time.monotonic() - began < 0.9
            with dialled, server.accept()[0] as accepted:
                assert accepted.getpeername() == dialled.getsockname()
            # The first dial is given up: it does not come in later.
            server.settimeout(1.5)
            with pytest.raises(TimeoutError):
                server.accept()


async def _dial_while_the_queue_is_full(server: socket.socket) -> socket.socket:
    loop = asyncio.get_running_loop()
    loop.call_later(0.1, lambda: server.accept()[0].close())
    return await open_socket(*server.getsockname())


def test_a_dial_that_is_given_up_leaves_no_socket_behind() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        where = server.getsockname()
        with socket.create_connection(where):
            with pytest.raises(TimeoutError):
                asyncio.run(_dial_in_vain(where))
            server.accept()[0].close()
            server.settimeout(1.5)
            with pytest.raises(TimeoutError):
                server.accept()


async def _dial_in_vain(where: "tuple[str, int]") -> None:
    async with asyncio.timeout(0.5):
        await open_socket(*where)
