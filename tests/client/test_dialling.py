"""Dialling, where the system does what one would not think of."""

import asyncio
import socket
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
