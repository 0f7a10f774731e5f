"""A request that the admin endpoint cannot read is refused, and leaves no traceback in the log."""

import asyncio
import logging

import pytest

from lockkeeper.server.admin import Admin


async def ask(request: bytes) -> bytes:
    """Return what the endpoint answers to raw bytes."""
    admin = Admin(dict, lambda: None, lambda sources: "", lambda fenced: None)
    await admin.start("127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", admin.port)
        writer.write(request)
        async with asyncio.timeout(20):
            answer = await reader.read()
        writer.close()
        return answer
    finally:
        await admin.stop()


@pytest.mark.parametrize("header", [b"X-Long: " + b"a" * 9_000, b"no colon"])
def test_a_header_that_cannot_be_read_is_refused_without_a_traceback(
    header: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answer = asyncio.run(ask(b"GET / HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n"))
    assert answer.split()[1] == b"400"
    assert not [record for record in caplog.records if record.exc_info]
