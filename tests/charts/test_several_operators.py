"""Releases of the chart that share a cluster: no object of one is another's."""

from collections.abc import Callable
from typing import Any

import pytest

Render = Callable[..., list[dict[str, Any]]]
OPERATOR_NAMESPACE = "lockkeeper-system"


def elsewhere(made: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """Return what is not in the release's own namespace."""
    found = set()
    for each in made:
        metadata = each["metadata"]
        if metadata.get("namespace") != OPERATOR_NAMESPACE:
            found.add((each["kind"], metadata.get("namespace", ""), metadata["name"]))
    return found


@pytest.mark.parametrize("namespaces", [[], ["watchNamespaces={shop}"]])
def test_releases_of_one_name_in_two_namespaces_have_nothing_in_common(
    render: Render, namespaces: list[str]
) -> None:
    settings = ["crds.install=false", *namespaces]
    first, second = render(*settings), render(*settings, "class=blue")
    assert elsewhere(first) and elsewhere(second)
    assert elsewhere(first) & elsewhere(second) == set()


def test_bindings_name_the_roles_that_there_are(render: Render) -> None:
    for settings in (["class=blue"], ["class=blue", "watchNamespaces={shop}"]):
        made = render(*settings)
        roles = {
            (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"])
            for each in made
            if each["kind"].endswith("Role")
        }
        for each in made:
            if each["kind"].endswith("Binding"):
                kind, name = each["roleRef"]["kind"], each["roleRef"]["name"]
                assert (kind, each["metadata"].get("namespace"), name) in roles


def test_operator_and_its_last_job_know_the_class(render: Render) -> None:
    def containers(*settings: str) -> list[dict[str, Any]]:
        return [
            each["spec"]["template"]["spec"]["containers"][0]
            for each in render(*settings)
            if each["kind"] in ("Deployment", "Job")
        ]

    operator, job = containers("class=blue")
    assert {"name": "LOCKKEEPER_CLASS", "value": "blue"} in operator["env"]
    assert "--class=blue" in job["args"]
    assert "class" not in str(containers()).lower()


def test_a_class_that_is_no_label_is_refused(render: Render) -> None:
    with pytest.raises(ValueError, match="class"):
        render("class=Blue!")
