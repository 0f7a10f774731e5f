"""The page about Celery: its application and its commands run as they stand."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import brokers
import pytest
from ports import free_port
from workers import wait_until

PAGE = (Path(__file__).parents[2] / "docs" / "celery.md").read_text("utf-8")
DEFAULT = "127.0.0.1:61616"
BIN = Path(sys.executable).parent


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A folder with the page's application, and the broker that the page starts in it."""
    port = free_port()
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert DEFAULT in code
    (tmp_path / "shop.py").write_text(code.replace(DEFAULT, f"127.0.0.1:{port}"))
    (command,) = [each for each in commands() if each.startswith("lockkeeper broker")]
    words = shlex.split(command.replace(DEFAULT, f"127.0.0.1:{port}"))
    words += ["--admin", "127.0.0.1:0"]
    running = brokers.RunningBroker("lockkeeper", port, tmp_path, [str(BIN / words[0]), *words[1:]])
    yield tmp_path, port
    running.stop()


def test_the_page_lists_the_commands_that_are_run_here() -> None:
    assert [each.split()[0] for each in commands()] == [
        "pip", "lockkeeper", "python", "celery", "celery", "celery",
    ]  # fmt: skip
    assert commands()[0] == "pip install 'lockkeeper-mq[celery]'"


@pytest.mark.slow
@pytest.mark.patient
def test_the_commands_do_what_the_page_says(started: tuple[Path, int]) -> None:
    folder, _ = started
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONWARNINGS": "ignore"}

    def ran(command: str) -> str:
        done = subprocess.run(
            shlex.split(command), cwd=folder, env=environment, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    *_, send, work, ping, status = commands()
    ran(send)
    log = folder / "worker.log"
    with log.open("w") as out:
        worker = subprocess.Popen(
            shlex.split(work), cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        wait_until(lambda: "paid 7" in log.read_text() and "paid 8" in log.read_text(), 90, log)
        assert "pong" in ran(ping)
        assert "1 node online" in ran(status)
        worker.terminate()
        assert worker.wait(60) == 0
    finally:
        worker.kill()


def test_every_url_of_the_page_is_understood() -> None:
    import kombu

    import lockkeeper.integrations.kombu  # noqa: F401
    from lockkeeper.client.url import parse_url
    from lockkeeper.integrations.kombu.address import target_of

    urls = re.findall(r"^\| `(lockkeeper\+[^`]+)`", PAGE, re.MULTILINE)
    assert len(urls) == 4
    for url in urls:
        assert parse_url(target_of(kombu.Connection(url)).url).addresses
