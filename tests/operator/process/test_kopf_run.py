"""`kopf run`: what is said to whoever names other namespaces to kopf than to the operator."""

import pytest
from kopf.testing import KopfRunner

from lockkeeper_operator.process.options import from_environment

COMMAND = ["run", "--standalone", "-m", "lockkeeper_operator.handlers"]


@pytest.mark.parametrize(
    ("where", "named"), [(["-n", "shop"], ""), (["-A"], "shop"), (["-A"], "shop,billing")]
)
def test_kopf_and_the_operator_are_told_of_the_same_namespaces(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    where: list[str],
    named: str,
) -> None:
    monkeypatch.setenv("LOCKKEEPER_NAMESPACES", named)
    with KopfRunner([*COMMAND, *where], timeout=30, reraise=False) as runner:
        pass
    assert runner.exit_code != 0
    assert "-n must name the namespaces that LOCKKEEPER_NAMESPACES names" in caplog.text


def test_a_developers_operator_leads_without_a_lease_and_is_seen_from_here_only() -> None:
    options = from_environment({"LOCKKEEPER_NAMESPACES": " shop, billing"})
    assert options.namespaces == ("shop", "billing")
    assert (options.election, options.host, options.analytics) == (False, "127.0.0.1", True)
    chosen = {"LOCKKEEPER_LEADER_ELECTION": "true", "LOCKKEEPER_ANALYTICS": "false"}
    options = from_environment(chosen)
    assert (options.namespaces, options.election, options.analytics) == (None, True, False)
