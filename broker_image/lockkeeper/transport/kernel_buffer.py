"""Bytes that the system keeps for a socket until the other end has room for them."""

import asyncio
import fcntl
import sys
import termios


def kept_bytes(transport: asyncio.Transport) -> int:
    """Return how much was handed over and is not at the other end yet; 0 if nobody can tell.

    Over TLS that is encrypted; of what the loop keeps between the two nothing is known.
    """
    raw = transport.get_extra_info("socket")
    if raw is None:
        return 0
    try:
        # To sockets of Linux this request is SIOCOUTQ.
        answer = fcntl.ioctl(raw.fileno(), termios.TIOCOUTQ, bytes(4))
    except OSError:
        return 0
    return int.from_bytes(answer, sys.byteorder)
