"""Unmodified RocketMQ clients of two lines see the same with Lockkeeper as with RocketMQ.

Every scenario is a program that says what it sees. What that is with a real RocketMQ is kept in
outcomes.json: the thorough tests hold it against one, all others hold ours against it.
`python tests/interop/rocketmq/record.py` writes it anew.
"""

from functools import cache
from typing import TYPE_CHECKING

import java_project
import pytest
import rocketmq_scenarios
from reference import BROKERS
from rocketmq_scenarios import LINES, Report, known_outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokers import RunningBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow]

QUICK = {
    "admin-by-key",
    "delay-level",
    "group-shares",
    "lite-seek",
    "push-sql",
    "push-tags",
    "raw-pull",
    "raw-send",
    "request-reply",
    "retry-dead-letter",
    "send-batch",
    "send-sync",
    "transaction-commit",
}
"""Scenarios of `make test`, with the client that has fewer jars to fetch."""
QUICK_LINE = "4.9.8"

NOT_BUILT = {
    "admin-groups": "a group's own numbers of retries and retry queues are not kept",
    "refused-read-only": "topics have no permissions; users have",
    "refused-write-only": "topics have no permissions; users have",
    "raw-pull": "a wrong filter of a pull is refused at once",
}
"""Differences from RocketMQ that docs/compatibility.md tells of. Strict: see the test."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pair each scenario with both kinds of broker and both lines of clients.

    Brokers alone are shared by their tests: pytest would have the lines in turn otherwise, and each
    turn would run all scenarios of its line.
    """
    if "scenario" not in metafunc.fixturenames:
        return
    marks = {"lockkeeper": (), "rocketmq": (pytest.mark.thorough,)}
    kinds = [pytest.param(kind, id=kind, marks=marks[kind]) for kind in BROKERS]
    metafunc.parametrize("broker", kinds, indirect=True, scope="module")
    cases = []
    for version in LINES:
        for scenario in [name for name, seen in known_outcomes().items() if version in seen]:
            quick = version == QUICK_LINE and scenario in QUICK
            name = f"{version}-{scenario}"
            cases.append(
                pytest.param(
                    version, scenario, id=name, marks=() if quick else pytest.mark.thorough
                )
            )
    metafunc.parametrize(("version", "scenario"), cases)


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[RunningBroker]":
    """Return a running broker, for the clients of both lines."""
    reason = java_project.missing()
    if reason:
        pytest.skip(reason)
    try:
        running = BROKERS[request.param](tmp_path_factory.mktemp(request.param))
    except RuntimeError as error:
        if request.param == "lockkeeper":
            raise
        pytest.skip(f"no RocketMQ: {error}")
    yield running
    running.kill()


@pytest.fixture(scope="module")
def reports(
    request: pytest.FixtureRequest,
    broker: "RunningBroker",
    tmp_path_factory: pytest.TempPathFactory,
) -> "Callable[[str], dict[str, Report]]":
    """Return what the scenarios of a line see that are asked for; they run once, side by side."""

    @cache
    def seen(version: str) -> dict[str, Report]:
        wanted: list[str] = []
        for item in request.session.items:
            callspec = getattr(item, "callspec", None)
            params = {} if callspec is None else callspec.params
            if (params.get("broker"), params.get("version")) == (broker.kind, version):
                wanted.append(params["scenario"])
        directory = tmp_path_factory.mktemp(f"clients-{version}-")
        return rocketmq_scenarios.run(version, wanted, broker.port, directory)

    return seen


def test_a_client_sees_what_it_sees_with_rocketmq(
    broker: "RunningBroker",
    reports: "Callable[[str], dict[str, Report]]",
    version: str,
    scenario: str,
    request: pytest.FixtureRequest,
) -> None:
    if broker.kind == "lockkeeper" and scenario in NOT_BUILT:
        request.applymarker(pytest.mark.xfail(reason=NOT_BUILT[scenario], strict=True))
    report = reports(version)[scenario]
    assert report.error is None, report.error
    assert report.facts == known_outcomes()[scenario][version]


@pytest.mark.parametrize("version", [QUICK_LINE])
def test_every_scenario_has_an_outcome(version: str) -> None:
    reason = java_project.missing()
    if reason:
        pytest.skip(reason)
    assert rocketmq_scenarios.names(version) == set(known_outcomes())
