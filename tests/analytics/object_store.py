"""An object store for tests: a server that speaks S3, in a process of its own.

Moto wants other versions of libraries than the operator, so `uv` runs it in an environment of its
own, made at the first run.
"""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_port
from pyarrow.fs import FileSystem

SERVER = "moto[server]==5.1.15"
SECONDS_MAX = 120


@contextmanager
def serving() -> Iterator[str]:
    """Yield where a server that speaks S3 listens."""
    address = f"127.0.0.1:{free_port()}"
    place = ("-H", "127.0.0.1", "-p", address.rpartition(":")[2])
    uv = Path(sys.executable).with_name("uv")
    command = (uv, "tool", "run", "--from", SERVER, "moto_server", *place)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        _wait_for(address)
        yield address
        server.terminate()


def _wait_for(address: str) -> None:
    for _ in range(SECONDS_MAX * 10):
        try:
            urllib.request.urlopen(f"http://{address}/moto-api/", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"no server at {address}; is PyPI there?")


def bucket(address: str, name: str, patch: pytest.MonkeyPatch) -> str:
    """Make a bucket, let this process know credentials, and return the settings of its URLs."""
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setitem(os.environ, variable, "anyone")
    query = f"endpoint_override={address}&scheme=http&region=us-east-1"
    filesystem, _ = FileSystem.from_uri(f"s3://{name}?{query}&allow_bucket_creation=true")
    filesystem.create_dir(name)
    return query


def upload(directory: Path, place: str, query: str) -> None:
    """Put the data files of *directory* below *place*, a bucket and a folder, as they are now."""
    filesystem, _ = FileSystem.from_uri(f"s3://{place}?{query}")
    for path in directory.rglob("*.log"):
        with filesystem.open_output_stream(f"{place}/{path.relative_to(directory)}") as file:
            file.write(path.read_bytes())
