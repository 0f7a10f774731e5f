"""`lockkeeper status` and `destinations` against a real pair of brokers."""

import http.server
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from cli_support import COMMAND, CommandLine, role_at, run_broker, stop, wait_until
from ports import free_ports

from lockkeeper.cli.destinations import is_wanted
from lockkeeper.cli.output import counted, duration_text, size_text


def has_role(admin: str, role: str) -> bool:
    return role_at(admin) == role


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The admin addresses of a master and a standby."""
    port, *admin_ports = free_ports(3)
    data = tmp_path_factory.mktemp("pair") / "data"
    admins = [f"http://127.0.0.1:{admin_port}" for admin_port in admin_ports]
    peers = [option for admin in admins for option in ("--peer", admin)]
    processes = []
    for replica, role in enumerate(("master", "standby")):
        process = run_broker(
            data, f"openwire://127.0.0.1:{port}", f"127.0.0.1:{admin_ports[0]}",
            "--replica", str(replica), *peers,
        )  # fmt: skip
        processes.append(process)
        wait_until(partial(has_role, admins[replica], role), process)
    yield admins
    for process in processes:
        stop(process)


@pytest.fixture
def lockkeeper(
    pair: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    monkeypatch.setenv("LOCKKEEPER_ADMIN", pair[0])
    return CommandLine(capsys, monkeypatch)


def test_either_replica_leads_to_all(lockkeeper: CommandLine, pair: list[str]) -> None:
    for address in pair:
        found = lockkeeper.done("status", "--json", "--admin", address).json()["replicas"]
        assert [(each["replica"], each["role"], each["admin"]) for each in found] == [
            ("lockkeeper-0", "master", pair[0]),
            ("lockkeeper-1", "standby", pair[1]),
        ]


def test_the_table_has_a_line_for_each(lockkeeper: CommandLine, pair: list[str]) -> None:
    heading, titles, master, standby = lockkeeper.done("status").out.splitlines()
    assert re.match(r"lockkeeper: clients use failover:\(tcp://127\.0\.0\.1:\d+\), ", heading)
    assert titles.split() == [
        "Replica", "Role", "For", "Process", "Clients", "Memory", "Journal", "Admin",
    ]  # fmt: skip
    assert re.match(
        r"lockkeeper-0  master   +\d+ s +\d+ +0  0 bytes of 1 GiB  +[\d.]+ \w+ in \d files?  ",
        master,
    )
    assert standby.startswith("lockkeeper-1  standby")
    assert standby.endswith(pair[1])


def test_a_replica_that_does_not_answer_has_a_line_too(
    lockkeeper: CommandLine, pair: list[str]
) -> None:
    out = lockkeeper.done("status", "--admin", pair[1], "--admin", "127.0.0.1:1").out
    assert len(out.splitlines()) == 5
    assert re.search(r"^- +no answer +http://127\.0\.0\.1:1$", out, re.MULTILINE)


def test_nobody_answers(lockkeeper: CommandLine) -> None:
    for command in ("status", "destinations"):
        outcome = lockkeeper(command, "--admin", "http://127.0.0.1:1")
        assert (outcome.code, outcome.out) == (1, "")
        assert outcome.err == (
            "lockkeeper: no broker answers at http://127.0.0.1:1; start one with `lockkeeper up`\n"
        )


def test_no_master_is_exit_code_1(lockkeeper: CommandLine, tmp_path: Path, pair: list[str]) -> None:
    standby = lockkeeper.done("status", "--json", "--admin", pair[1]).json()["replicas"][1]
    port, admin_port = free_ports(2)
    admin = f"http://127.0.0.1:{admin_port}"
    process = run_broker(
        Path(standby["data"]), f"openwire://127.0.0.1:{port}", f"127.0.0.1:{admin_port}"
    )
    try:
        wait_until(lambda: role_at(admin) == "standby", process)
        outcome = lockkeeper("status", "--admin", admin)
        assert outcome.code == 1
        assert outcome.out.endswith("There is no master.\n")
        outcome = lockkeeper("destinations", "--admin", admin)
        assert outcome.code == 1
        assert outcome.err == f"lockkeeper: there is no master ({admin} is standby)\n"
    finally:
        stop(process)


@pytest.mark.parametrize("address", ["ftp://x:1", "http://x:99999999", "http://x:1/api", "http://"])
def test_an_address_that_is_none(lockkeeper: CommandLine, address: str) -> None:
    outcome = lockkeeper("status", "--admin", address)
    assert outcome.code == 2
    assert f"--admin {address}: write http://HOST:PORT" in outcome.err


def test_another_program_is_not_taken_for_a_broker(lockkeeper: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "api" / "v1").mkdir(parents=True)
    (tmp_path / "api" / "v1" / "status").write_text('["hello"]')

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        outcome = lockkeeper("status", "--admin", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert outcome.code == 1
    assert "no broker answers at" in outcome.err


def test_the_port_of_clients_is_no_admin_address(lockkeeper: CommandLine) -> None:
    listeners = lockkeeper.done("status", "--json").json()["replicas"][0]["listeners"]
    outcome = lockkeeper("status", "--admin", listeners[0].replace("openwire", "http"))
    assert outcome.code == 1
    assert "no broker answers at" in outcome.err


def test_destinations_have_their_figures(lockkeeper: CommandLine, pair: list[str]) -> None:
    listeners = lockkeeper.done("status", "--json").json()["replicas"][0]["listeners"]
    url = ("--url", listeners[0].replace("openwire", "tcp"))
    lockkeeper.done("send", "ORDERS.EU", "x", "--count", "3", *url)
    lockkeeper.done("send", "ORDERS.US", "x", *url)
    lockkeeper.done("send", "topic://NEWS", "x", *url)
    lockkeeper.done("receive", "ORDERS.EU", *url)
    out = lockkeeper.done("destinations").out
    assert [line.split() for line in out.splitlines()] == [
        ["Name", "Depth", "Consumers", "Enqueued", "Dequeued", "Besides"],
        ["ORDERS.EU", "2", "0", "3", "1"],
        ["ORDERS.US", "1", "0", "1", "0"],
        ["topic://NEWS", "0", "0", "1", "0"],
    ]  # fmt: skip
    found = lockkeeper.done("destinations", "*.US", "--json").json()["destinations"]
    assert [(each["name"], each["depth"]) for each in found] == [("ORDERS.US", 1)]
    assert lockkeeper.done("destinations", "INVOICES").out == "There is no destination INVOICES.\n"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (None, True), ("ORDERS.EU", True), ("ORDERS", False), ("ORDERS.>", True), (">", True),
        ("ORDERS.*", True), ("*", False), ("*.*", True), ("*.*.*", False), ("ORD*.E?", True),
        ("queue://ORDERS.EU", True), ("topic://ORDERS.>", False), ("orders.eu", False),
    ],
)  # fmt: skip
def test_patterns(pattern: str | None, expected: bool) -> None:
    assert is_wanted(pattern, "Queue", "ORDERS.EU") is expected


@pytest.mark.parametrize("command", ["status", "destinations"])
def test_watching_goes_on_until_control_c(pair: list[str], command: str) -> None:
    with subprocess.Popen(
        [COMMAND, command, "--watch", "--json", "--admin", pair[0]],
        stdout=subprocess.PIPE, text=True,
    ) as watching:  # fmt: skip
        assert watching.stdout is not None
        lines = [watching.stdout.readline() for _ in range(2)]
        assert all(line.startswith('{"') for line in lines)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(10) == 0


def test_quantities_for_people() -> None:
    assert [size_text(size) for size in (0, 1023, 1024, 1536, 2**20 * 1000, 2**60)] == [
        "0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "1000 MiB", "1024 PiB",
    ]  # fmt: skip
    assert [duration_text(seconds) for seconds in (-1, 59.9, 60, 3_700, 90_000)] == [
        "0 s", "59 s", "1 min 0 s", "1 h 1 min", "1 d 1 h",
    ]  # fmt: skip
    assert [counted(count, "file") for count in (0, 1, 1000)] == [
        "0 files",
        "1 file",
        "1,000 files",
    ]


def test_help_answers_at_once() -> None:
    """Without the rooms that take long to import."""
    heavy = {"aiohttp", "pydantic_core", "uvloop", "pyspark", "lockkeeper.broker.core"}
    program = f"import lockkeeper.cli.main, sys; print({heavy!r} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
