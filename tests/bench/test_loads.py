"""The loads of the bench at real brokers, over TLS and through a mixed day."""

from pathlib import Path

import others
import pytest
from others import brokers, identities, java_project
from run import Client, LoadError, result_of, run_load

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("kind", ["lockkeeper", "activemq"])
def test_brokers_carry_tls_and_a_mixed_day(kind: str, tmp_path: Path) -> None:
    reason = brokers.missing(kind) or java_project.missing()
    if reason:
        pytest.skip(reason)
    identity = identities.make(tmp_path / "certificates")
    class_path = java_project.build(others.HERE / "java")
    java = ["java", "-Xmx512M", *identity.java_options, "-cp", class_path]
    client = Client([*java, "dev.lockkeeper.bench.Load"], warm_up=1, seconds=1, day=8)
    broker = others.start(kind, tmp_path / "home", identity, scheduler=True)
    try:
        secured = result_of(run_load(broker, client, "r"), kind, "r", 1)
        day = result_of(run_load(broker, client, "s"), kind, "s", 1)
        # Trusting nobody, the client does not even connect.
        stranger = client._replace(command=["java", "-cp", class_path, client.command[-1]])
        with pytest.raises(LoadError, match="the client ended with an error"):
            run_load(broker, stranger, "r")
    finally:
        broker.running.stop()
    assert secured.rate > 0
    assert day.rate > 300
    assert day.curve is not None and day.curve["50"] == day.p50_us
    assert day.pause_us is not None and day.pause_us > 0
    assert day.stall_us is not None and day.stall_us > 0
