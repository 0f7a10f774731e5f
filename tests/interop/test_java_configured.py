"""The unmodified Java client finds the same in Lockkeeper as in ActiveMQ, configured alike."""

from typing import TYPE_CHECKING

import pytest
from configured_scenarios import CONFIGURED

if TYPE_CHECKING:
    from brokers import RunningBroker
    from java_scenarios import JavaScenarios

pytestmark = [pytest.mark.interop, pytest.mark.slow]

NOT_BUILT: dict[str, str] = {}
"""What our broker cannot do yet, by scenario. Strict: a feature that comes leaves this list."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pair every scenario with both kinds of broker in its configuration."""
    cases = [
        pytest.param((kind, configuration), scenario, id=f"{kind}-{scenario}")
        for configuration, scenarios in CONFIGURED.items()
        for kind in ("lockkeeper", "activemq")
        for scenario in scenarios
    ]
    # Without the scope there would be a broker for each scenario, since those are no fixture.
    names = ("configured_broker", "scenario")
    metafunc.parametrize(names, cases, indirect=names[:1], scope="module")


def test_a_java_client_gets_what_it_expects_of_this_configuration(
    scenario: str,
    configured_broker: "RunningBroker",
    java_scenarios: "JavaScenarios",
    request: pytest.FixtureRequest,
) -> None:
    if configured_broker.kind == "lockkeeper" and scenario in NOT_BUILT:
        request.applymarker(pytest.mark.xfail(reason=NOT_BUILT[scenario], strict=True))
    result = java_scenarios.run(scenario, configured_broker.url)
    assert result["ok"], result["error"]
