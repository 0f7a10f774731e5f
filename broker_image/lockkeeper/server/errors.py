"""Reasons why a broker process cannot run."""

import errno
import os


class CannotRunError(Exception):
    """A process cannot run as it was told to; the text names the setting and the way out."""


def listening_failed(what: str, host: str, port: int, error: OSError, way_out: str) -> Exception:
    """Return the error to raise when *what* cannot listen on *host*:*port*."""
    if error.errno == errno.EADDRINUSE:
        reason = f"{host}:{port} is in use by another program"
    else:
        # asyncio puts its own sentence where the system's word for the number belongs.
        known = error.errno is not None and error.errno in errno.errorcode
        said = os.strerror(error.errno or 0) if known else error.strerror or str(error)
        reason = f"cannot listen on {host}:{port}: {said}"
    return CannotRunError(f"{what}: {reason}; {way_out}")
