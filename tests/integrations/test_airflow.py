"""The provider of Airflow, in Airflow, which has an environment of its own: uv makes it once."""

import subprocess
import sys
from pathlib import Path

import pytest
from brokers import RunningBroker

from lockkeeper.client import connect

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build" / "airflow-3.3.2"
PYTHON = PLACE / "bin" / "python"
PACKAGES = ("apache-airflow==3.3.2", "apache-airflow-providers-common-messaging==2.1.2")
COURSES = Path(__file__).with_name("airflow_courses.py")
PAGE = ROOT / "docs" / "airflow.md"
INSTALL_SECONDS_MAX, COURSE_SECONDS_MAX = 300, 200


@pytest.fixture(scope="session")
def airflow() -> Path:
    """Return the Python of an environment with Airflow and this distribution."""
    done = PLACE / ".set-up"
    if not done.exists():
        uv = Path(sys.executable).with_name("uv")
        install = ("pip", "install", "--quiet", "--python", PYTHON, *PACKAGES, "--editable", ROOT)
        commands: list[tuple[str | Path, ...]] = [
            ("venv", "--quiet", "--allow-existing", "--python", sys.executable, PLACE),
            install,
        ]
        try:
            for command in commands:
                subprocess.run((uv, *command), check=True, timeout=INSTALL_SECONDS_MAX)
        except subprocess.SubprocessError as error:
            pytest.skip(f"no Airflow to install: {error}")
        done.touch()
    return PYTHON


def run(python: Path, home: Path, course: str, *arguments: str) -> None:
    """Run one of airflow_courses.py in Airflow's environment, with settings of its own."""
    environment = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
        "PATH": "/usr/bin:/bin",
    }
    ended = subprocess.run(
        [python, COURSES, course, *arguments],
        env=environment, capture_output=True, text=True, timeout=COURSE_SECONDS_MAX, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr


def waiting(broker: RunningBroker, queue: str) -> list[object]:
    with connect(broker.url) as connection:
        return [message.body for message in connection.session().browse(queue)]


def send(broker: RunningBroker, queue: str, *bodies: str) -> None:
    with connect(broker.url) as connection:
        producer = connection.session().producer(queue)
        for body in bodies:
            producer.send(body, {"colour": body})


def test_airflow_finds_the_provider(airflow: Path, tmp_path: Path) -> None:
    run(airflow, tmp_path, "discovery")


def test_the_page_has_a_dag_that_airflow_takes(airflow: Path, tmp_path: Path) -> None:
    run(airflow, tmp_path, "page", str(PAGE))


def test_a_message_is_acknowledged_when_its_event_is_stored(
    airflow: Path, broker: RunningBroker, tmp_path: Path
) -> None:
    send(broker, "AIR.STORED", "red", "blue")
    run(airflow, tmp_path, "stored", broker.url, "AIR.STORED")
    assert waiting(broker, "AIR.STORED") == ["blue"]


def test_what_a_dead_triggerer_had_in_hand_comes_again(
    airflow: Path, broker: RunningBroker, tmp_path: Path
) -> None:
    send(broker, "AIR.DEAD", "red", "blue")
    run(airflow, tmp_path, "killed", broker.url, "AIR.DEAD")
    assert waiting(broker, "AIR.DEAD") == ["red", "blue"]


def test_every_body_is_json(airflow: Path, broker: RunningBroker, tmp_path: Path) -> None:
    with connect(broker.url) as connection:
        producer = connection.session().producer("AIR.JSON")
        producer.send(b"\x00\xff")
        producer.send({"rate": float("nan"), "raw": b"\x01"})
    run(airflow, tmp_path, "json", broker.url, "AIR.JSON")


def test_a_connection_says_where_and_who(
    airflow: Path, broker: RunningBroker, tmp_path: Path
) -> None:
    send(broker, "AIR.CONN", "red")
    run(airflow, tmp_path, "connection", broker.url, "AIR.CONN")
    assert waiting(broker, "AIR.CONN") == []


def test_a_cut_is_survived(airflow: Path, mortal_broker: RunningBroker, tmp_path: Path) -> None:
    send(mortal_broker, "AIR.CUT", "red")
    course = subprocess.Popen(
        [airflow, COURSES, "cut", f"failover:({mortal_broker.url})", "AIR.CUT"],
        env={"AIRFLOW_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert course.stdout is not None
    assert any("have red" in line for line in course.stdout)
    mortal_broker.kill()
    mortal_broker.start()
    send(mortal_broker, "AIR.CUT", "blue")
    output, _ = course.communicate("go on\n", timeout=COURSE_SECONDS_MAX)
    assert course.returncode == 0, output
    assert waiting(mortal_broker, "AIR.CUT") == []
