"""The pytest plugin, as it is in runs of others: what it costs, and what it hands out."""

import subprocess
import sys

import pytest

pytest_plugins = "pytester"

USING = """
from lockkeeper.client import connect

def test_it(lockkeeper_broker):
    with connect(lockkeeper_broker.url) as connection:
        session = connection.session()
        session.producer("A").send("x")
        assert session.consumer("A").receive(20).body == "x"
    print(type(lockkeeper_broker).__name__)
"""

AFTER_A_KILL = """
import pytest
from lockkeeper.client import connect

@pytest.mark.lockkeeper(process=True)
def test_it(lockkeeper_broker):
    url = lockkeeper_broker.url
    with connect(url) as connection:
        connection.session().producer("A").send("kept")
    lockkeeper_broker.kill()
    lockkeeper_broker.start()
    with connect(url) as connection:
        assert connection.session().consumer("A").receive(20).body == "kept"
    print(type(lockkeeper_broker).__name__)

@pytest.mark.lockkeeper(process=True)
def test_time(lockkeeper_broker):
    lockkeeper_broker.advance("6h")
"""

CONFIGURED = """
import pytest
from lockkeeper.client import connect

@pytest.fixture
def lockkeeper_configuration(tmp_path):
    file = tmp_path / "broker.yaml"
    file.write_text('''
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {name: shop}
spec: {destinationPolicies: [{match: ">", prioritizedMessages: true}]}
''')
    return file

def test_it(lockkeeper_broker):
    with connect(lockkeeper_broker.url) as connection:
        session = connection.session()
        for priority in (1, 9):
            session.producer("A").send(str(priority), priority=priority)
        assert session.consumer("A").receive(20).body == "9"
"""

LIGHT = """
import sys

def test_it():
    ours = {name for name in sys.modules if name.startswith("lockkeeper")}
    others = {"asyncio", "pydantic", "yaml"} & sys.modules.keys()
    assert ours <= {
        "lockkeeper", "lockkeeper.speedups", "lockkeeper.testing", "lockkeeper.testing.plugin",
    }
    assert others <= {"asyncio"}
"""


def test_a_test_has_a_broker_in_its_process(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(USING)
    result = pytester.runpytest_inprocess("-s", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*InProcessBroker*"])


def test_a_file_of_ones_own_is_its_configuration(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CONFIGURED)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.slow
@pytest.mark.patient
def test_a_marker_makes_it_a_process_which_has_the_time_of_its_machine(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(AFTER_A_KILL)
    result = pytester.runpytest_inprocess("-s", "-rs", "--strict-markers")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*ProcessBroker*", "*virtual time needs the broker in*"])


@pytest.mark.slow
@pytest.mark.patient
def test_an_option_makes_all_of_them_processes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(USING)
    result = pytester.runpytest_inprocess("-s", "--lockkeeper-process")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*ProcessBroker*"])


def test_tests_that_do_not_ask_for_it_import_nothing_of_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(LIGHT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", "."]
    ran = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
