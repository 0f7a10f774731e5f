"""What a change of each field takes: said by the field, and nowhere else."""

from typing import Annotated

from pydantic import Field

from lockkeeper_api.broker import BrokerSpec, Listener
from lockkeeper_api.changes import LIVE, OPERATOR, POD, RESTART, change_of, names, paths, without
from lockkeeper_api.meta import ApiModel


class Inner(ApiModel):
    plain: int = 1
    label: Annotated[str, OPERATOR] = ""


class Outer(ApiModel):
    one: Inner = Inner()
    maybe: Annotated[Inner | None, POD] = None
    several: list[Inner] = Field(default=[], max_length=3)
    live: Annotated[int, LIVE] = Field(default=1, ge=1)


def test_a_field_without_a_mark_takes_a_restart() -> None:
    found = {name: change_of(field) for name, field in Outer.model_fields.items()}
    assert found == {"one": RESTART, "maybe": POD, "several": RESTART, "live": LIVE}


def test_parts_are_left_out_however_deep_they_are() -> None:
    excluded = without(Outer, OPERATOR)
    assert excluded == {
        "one": {"label": True},
        "maybe": {"label": True},
        "several": {"__all__": {"label": True}},
    }
    outer = Outer(maybe=Inner(), several=[Inner(), Inner(plain=2)])
    assert outer.model_dump(exclude=excluded) == {
        "one": {"plain": 1},
        "maybe": {"plain": 1},
        "several": [{"plain": 1}, {"plain": 2}],
        "live": 1,
    }
    assert without(Outer, POD, LIVE) == {"maybe": True, "live": True}


def test_a_broker_says_what_each_change_takes() -> None:
    assert names(BrokerSpec, LIVE) == {"network_connectors", "destination_policies", "access"}
    assert names(BrokerSpec, POD) == {"storage", "image", "resources", "pods", "security"}
    assert names(BrokerSpec, OPERATOR) == {
        "replicas", "disruption_budget", "monitoring", "update", "paused", "hibernated",
        "allowed_destinations", "allowed_networks", "analytics", "bootstrap",
    }  # fmt: skip
    assert names(Listener, OPERATOR) == {"service", "route"}


def test_what_no_broker_process_reads_is_described_as_the_clusters() -> None:
    for name in names(BrokerSpec, POD, OPERATOR) - {"replicas"}:
        assert (BrokerSpec.model_fields[name].description or "").startswith("Cluster: "), name


def test_paths_are_as_resources_write_them() -> None:
    assert list(paths(Outer, OPERATOR)) == ["one.label", "maybe.label", "several[].label"]
    assert "storage.deletionPolicy" in set(paths(BrokerSpec, OPERATOR))
    assert "listeners[].service" in set(paths(BrokerSpec, OPERATOR))
