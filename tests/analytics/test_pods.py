"""What the analytics image runs, without Spark."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from journal_maker import JournalMaker, message_id, rows_of

from lockkeeper_analytics.comparison.runs import found_run, run_of
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.job import PAGE, known_reports
from lockkeeper_analytics.pods.application import parser, run_name
from lockkeeper_analytics.pods.commands import command_of, java_options, serve
from lockkeeper_analytics.pods.delivery import deliver
from lockkeeper_analytics.pods.kept import kept_in
from lockkeeper_analytics.pods.progress import ANNOTATION, OwnPod, Progress, Tasks, own_pod
from lockkeeper_analytics.reading.moments import moment

JAVA, SPARK = Path("/java"), Path("/spark")
NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "nightly-exec-1",
    "SPARK_EXECUTOR_MEMORY": "1024m",
}


def test_a_driver_is_spark_submit_in_client_mode_bound_to_its_pods_address() -> None:
    given = ["driver", "--class", "X", "local:///a.py", "--out", "b"]
    assert command_of(given, {"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.7"}, JAVA, SPARK) == [
        "/spark/bin/spark-submit",
        *("--conf", "spark.driver.bindAddress=10.0.0.7"),
        *("--conf", "spark.executorEnv.SPARK_DRIVER_POD_IP=10.0.0.7"),
        *("--deploy-mode", "client", "--class", "X", "local:///a.py", "--out", "b"),
    ]
    assert command_of(["driver", "a.py"], {}, JAVA, SPARK)[1:] == [
        "--deploy-mode",
        "client",
        "a.py",
    ]


def test_an_executor_finds_all_in_its_environment() -> None:
    more = {f"SPARK_JAVA_OPT_{n}": f"-Dn={n}" for n in (10, 2, 0)}
    command = command_of(["executor"], {**EXECUTOR, **more, "SPARK_CONF_DIR": "/c"}, JAVA, SPARK)
    assert command[:6] == [
        "/java/bin/java", "-Dn=0", "-Dn=2", "-Dn=10", "-Xms1024m", "-Xmx1024m",
    ]  # fmt: skip
    assert command[6:9] == [
        "-cp", "/c:/spark/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    ]  # fmt: skip
    options = dict(zip(command[9::2], command[10::2], strict=True))
    assert options["--driver-url"] == EXECUTOR["SPARK_DRIVER_URL"]
    assert options["--podName"] == "nightly-exec-1"
    assert len(options) == 7


@pytest.mark.parametrize("name", EXECUTOR)
def test_what_an_executor_lacks_is_named(name: str) -> None:
    environment = {**EXECUTOR, name: ""}
    with pytest.raises(AnalyticsError, match=f"executor: not set: {name}$"):
        command_of(["executor"], environment, JAVA, SPARK)


def test_what_is_neither_is_run_as_it_is() -> None:
    assert command_of(["lockkeeper", "sql"], {}, JAVA, SPARK) == ["lockkeeper", "sql"]
    assert serve(["/r", "8080"])[-3:] == ["--directory", "/r", "8080"]
    for wrong in (["/r"], ["/r", "x"]):
        with pytest.raises(AnalyticsError, match="expected serve"):
            serve(wrong)
    with pytest.raises(AnalyticsError, match="expected driver"):
        command_of([], {}, JAVA, SPARK)
    assert java_options({"SPARK_JAVA_OPTS": "x"}) == []


def entry_point(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "lockkeeper_analytics.pods", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), 137),
        (("/no/such/command",), 126),
        (("executor",), 1),
        (("sh", "-c", 'test -x "$JAVA_HOME/bin/java" && test -d "$SPARK_HOME/jars"'), 0),
    ],
)
def test_the_entry_point_ends_as_its_command_does(arguments: tuple[str, ...], code: int) -> None:
    process = entry_point(*arguments)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said


def test_what_serves_needs_no_java() -> None:
    command = [sys.executable, "-m", "lockkeeper_analytics.pods", "serve", "/nowhere", "none"]
    without = {**os.environ, "PATH": "/nowhere", "JAVA_HOME": "/nowhere", "TMPDIR": "/nowhere"}
    done = subprocess.run(command, capture_output=True, text=True, env=without, check=False)
    assert (done.returncode, done.stderr) == (1, "lockkeeper: expected serve FOLDER PORT\n")


def test_a_signal_to_stop_reaches_the_command() -> None:
    process = entry_point("sh", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 9


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", ""),
        ("2027-03-01", "2027-03-01"),
        ("1795000000000", "1795000000000"),
        ("24h", "2027-02-28T12:00:00.000+00:00"),
        ("7d", "2027-02-22T12:00:00.000+00:00"),
        ("1h30m", "2027-03-01T10:30:00.000+00:00"),
        ("1.5s", "2027-03-01T11:59:58.500+00:00"),
    ],
)
def test_a_time_may_be_how_long_ago_it_was(text: str, meant: str) -> None:
    assert moment(text, NOW) == meant


def test_a_run_has_a_folder_of_its_own_and_the_latest_page_is_beside_it(tmp_path: Path) -> None:
    results, target = tmp_path / "results", tmp_path / "target"
    results.mkdir()
    for run in ("one", "two"):
        summary = {
            "made_at": NOW.isoformat(),
            "directories": ["/journal"],
            "options": {"destination": ""},
            "counted_from": None,
            "last_at": None,
            "figures": {"sent": len(run)},
        }
        (results / "report.json").write_text(json.dumps(summary))
        (results / PAGE).write_text(run)
        (results / "totals.parquet").write_text(run)
        assert deliver(results, str(target), run) == f"{target}/{run}"
        assert (target / PAGE).read_text() == run
        assert found_run(str(target), ("/journal",), "") == run_of(summary)
    names = ["index.html", "one", "report.json", "two"]
    assert sorted(each.name for each in target.iterdir()) == names
    assert (target / "one" / "totals.parquet").read_text() == "one"


def test_results_go_to_urls_in_the_same_way(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / PAGE).write_text("page")
    (results / "report.json").write_text("{}")
    (results / "totals.parquet").write_text("totals")
    assert deliver(results, f"file://{tmp_path}/t/", "one") == f"file://{tmp_path}/t/one"
    assert (tmp_path / "t" / "one" / "totals.parquet").read_text() == "totals"
    assert (tmp_path / "t" / PAGE).read_text() == "page"
    assert (tmp_path / "t" / "report.json").read_text() == "{}"


def test_settings_of_a_file_system_stay_behind_the_folder(tmp_path: Path) -> None:
    (tmp_path / PAGE).write_text("page")
    # A file system in memory, of pyarrow's own.
    target = "mock:///bucket/daily/?current_time=0"
    assert deliver(tmp_path, target, "one") == "mock:///bucket/daily/one?current_time=0"


@pytest.mark.parametrize("target", ["/proc/nowhere", "gopher://host/path"])
def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path, target: str) -> None:
    (tmp_path / PAGE).write_text("page")
    with pytest.raises(AnalyticsError, match=f"cannot be written to {target}"):
        deliver(tmp_path, target, "one")


def test_the_run_is_named_by_who_started_it() -> None:
    assert run_name("mine", {"LOCKKEEPER_RUN": "theirs"}, NOW) == "mine"
    assert run_name("", {"LOCKKEEPER_RUN": "theirs"}, NOW) == "theirs"
    assert run_name("", {"LOCKKEEPER_RUN": ""}, NOW) == "20270301T120000Z"


def test_the_applications_arguments_are_those_that_the_operator_gives() -> None:
    asked = parser().parse_args(
        [
            "--journal",
            "/a",
            "--out",
            "/b",
            "--report",
            "totals",
            "--since",
            "24h",
            "--rule",
            "lag > 1h",
            "--bodies",
            "--mask",
            "*pin",
        ]
    )
    assert (asked.journal, asked.out, asked.report, asked.since) == (
        ["/a"], "/b", ["totals"], "24h",
    )  # fmt: skip
    assert asked.rule == ["lag > 1h"]
    assert (asked.bodies, asked.mask) == (True, ["*pin"])
    with pytest.raises(SystemExit):
        parser().parse_args(["--out", "/b"])


def test_reports_are_known_by_name() -> None:
    assert known_reports(["totals", "totals"]) == ("totals",)
    assert len(known_reports([])) > 5
    with pytest.raises(AnalyticsError, match="no report 'total'; did you mean 'totals'"):
        known_reports(["total"])


class Server(http.server.ThreadingHTTPServer):
    """Takes annotations as an API server does, or refuses them."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = status
        self.said: list[tuple[str, str, dict[str, object]]] = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_PATCH(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Server)
        text = json.loads(body)["metadata"]["annotations"][ANNOTATION]
        self.server.said.append((self.path, self.headers["Authorization"], json.loads(text)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=[200, 403])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(request.param) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_progress_is_written_to_the_drivers_own_pod(server: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    pod = OwnPod("driver-1", "airport", f"http://127.0.0.1:{server.server_port}", tmp_path)
    with Progress(pod, seconds=0.02) as progress:
        progress.counted_by(lambda: Tasks(8, 3))
        progress.tell("report: totals")
        end = time.monotonic() + 10
        while not progress.problem and not any(
            each[2]["step"] == "report: totals" for each in server.said
        ):
            assert time.monotonic() < end
            time.sleep(0.01)
        if server.status == 403:
            progress.tell("report: rates")
    path, authorization, said = server.said[-1]
    assert path == "/api/v1/namespaces/airport/pods/driver-1"
    assert authorization == "Bearer secret"
    assert (said["tasks"], said["completed"]) in ((8, 3), (0, 0))
    # Who is refused does not ask again.
    assert len(server.said) == 1 if server.status == 403 else not progress.problem


def test_outside_of_a_pod_nobody_is_told() -> None:
    assert own_pod({}) is None
    assert own_pod({"LOCKKEEPER_POD": "a", "LOCKKEEPER_NAMESPACE": "b"}) is not None
    with Progress(None) as progress:
        progress.tell("a step")
    assert progress.problem == ""


def test_what_is_judged_just_before_the_end_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    with Server(200) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        pod = OwnPod("driver-1", "airport", f"http://127.0.0.1:{server.server_port}", tmp_path)
        with Progress(pod, seconds=60) as progress:
            progress.tell("a step")
            progress.judge(["lag > 1h: ORDERS"])
        server.shutdown()
        thread.join()
    assert server.said[-1][2]["broken"] == ["lag > 1h: ORDERS"]


def test_what_an_analysis_keeps_is_what_it_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maker = JournalMaker(tmp_path / "journal").add(1, 0).clock(0).flush()
    history = tmp_path / "history"
    (place,) = kept_in(str(history), [str(maker.directory)], "north")
    assert place == str(history / "broker=north")
    maker.roll().add(2, 1).flush().roll().add(3, 2).flush()
    for number in (1, 2):
        (maker.directory / f"db-{number}.log").unlink()
    assert kept_in(str(history), [str(maker.directory)], "north") == [place]
    told = [row["message_id"] for row in rows_of(Path(place)) if row["kind"] == "add"]
    assert told == [message_id(1), message_id(3)]
    assert "2 ranges were removed before they were read" in capsys.readouterr().err
    assert kept_in(str(history), [str(maker.directory)]) == [str(history / "broker=journal")]
