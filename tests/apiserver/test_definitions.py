"""The definitions of our resources, as an API server takes them."""

from pathlib import Path

import pytest
from control_plane import ControlPlane

DEFINITIONS = sorted((Path(__file__).parents[2] / "crds").glob("*.yaml"))
SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
BYTES_MAX = 96 * 1024


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_plain_apply_takes_a_definition_and_a_second_time_changes_nothing(
    control_plane: ControlPlane, path: Path
) -> None:
    assert path.stat().st_size < BYTES_MAX
    control_plane.kubectl("apply", "-f", str(path))
    assert control_plane.kubectl("apply", "-f", str(path)).split()[1:] == ["unchanged"]


def test_nothing_of_a_schema_is_lost_or_unsupported(control_plane: ControlPlane) -> None:
    plurals = [path.stem.removeprefix("lockkeeper.dev_") for path in DEFINITIONS]
    kinds = [f"crd/{plural}.lockkeeper.dev" for plural in plurals]
    conditions = control_plane.kubectl(
        "get", *kinds, "-o", "jsonpath={.items[*].status.conditions[*].type}"
    )
    assert len(kinds) >= 2
    assert "NonStructuralSchema" not in conditions
    assert conditions.split().count("Established") == len(kinds)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_samples_are_taken(control_plane: ControlPlane, path: Path, namespace: str) -> None:
    control_plane.kubectl("apply", "-n", namespace, "-f", str(path))
