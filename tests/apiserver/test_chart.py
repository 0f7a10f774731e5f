"""The Helm chart: what helm makes of it, an API server takes."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from control_plane import CACHED_KUBE, ControlPlane

PROJECT = Path(__file__).parents[2]
CHART = PROJECT / "charts" / "lockkeeper"
MANIFEST = PROJECT / "deploy" / "lockkeeper.yaml"
SYSTEM = "lockkeeper-system"
# Without the CRDs of Prometheus' operator, whose kinds a bare API server does not know.
SETTINGS: dict[str, list[str]] = {
    "defaults": [],
    "two namespaces": ["watchNamespaces={default,kube-public}"],
    "no analyses, roles by somebody else": ["analytics.enabled=false", "rbac.create=false"],
    "nothing but the operator": ["crds.install=false", "rbac.aggregate=false", "replicas=1"],
    "dashboards": ["monitoring.dashboards=true", "monitoring.labels.release=prometheus"],
    "everything about pods": [
        "imagePullSecrets={registry}",
        "podLabels.team=messaging",
        "podAnnotations.note=mine",
        "nodeSelector.kubernetes\\.io/os=linux",
        "tolerations[0].operator=Exists",
        "priorityClassName=system-cluster-critical",
        "serviceAccount.annotations.role=none",
    ],
}


@pytest.fixture(scope="session")
def helm() -> str:
    """The helm of this machine, or that of `e2e/cluster/helm.sh`."""
    cached = CACHED_KUBE.parent / "helm"
    found = shutil.which("helm") or (str(cached) if os.access(cached, os.X_OK) else None)
    if found is None:
        pytest.skip("needs helm: e2e/cluster/helm.sh builds one")
    return found


def rendered(helm: str, *settings: str, name: str = "lockkeeper") -> str:
    chosen = [part for setting in settings for part in ("--set", setting)]
    command = [helm, "template", name, str(CHART), "--namespace", SYSTEM]
    done = subprocess.run(
        [*command, "--kube-version", "1.34.4", *chosen],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(text) if each]


@pytest.fixture(scope="module")
def plane_with_namespace(control_plane: ControlPlane) -> ControlPlane:
    control_plane.kubectl("create", "namespace", SYSTEM, check=False)
    return control_plane


def roles(made: list[dict[str, Any]]) -> dict[str, dict[str, set[str]]]:
    """Return the verbs by resource of every role, by kind and name."""
    found: dict[str, dict[str, set[str]]] = {}
    for each in made:
        if each["kind"] in ("Role", "ClusterRole"):
            rights = found.setdefault(f"{each['kind']} {each['metadata']['name']}", {})
            for rule in each["rules"]:
                for resource in rule["resources"]:
                    rights.setdefault(resource, set()).update(rule["verbs"])
    return found


def test_with_watched_namespaces_nothing_counts_in_the_whole_cluster(helm: str) -> None:
    made = objects(rendered(helm, "watchNamespaces={shop,billing}"))
    everywhere = {each["kind"] for each in made if "namespace" not in each["metadata"]}
    assert everywhere == {"CustomResourceDefinition"}
    places = {each["metadata"]["namespace"] for each in made if each["kind"] == "Role"}
    assert places == {"shop", "billing", SYSTEM}


def test_without_analyses_and_backups_the_operator_makes_no_pods_but_those_of_bootstraps(
    helm: str,
) -> None:
    full = roles(objects(rendered(helm)))["ClusterRole lockkeeper"]
    assert {"create", "deletecollection"} <= full["pods"]
    made = objects(rendered(helm, "analytics.enabled=false", "backups.enabled=false"))
    less = roles(made)["ClusterRole lockkeeper"]
    assert less["pods"] == {"get", "list", "watch", "patch", "delete"}
    assert less["configmaps"] == {"get", "list", "watch", "create", "patch", "delete"}
    assert less.keys().isdisjoint({"cronjobs", "deployments", "sparkapplications"})
    (deployment,) = [each for each in made if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": "LOCKKEEPER_ANALYTICS", "value": "false"} in container["env"]
    assert {"name": "LOCKKEEPER_BACKUPS", "value": "false"} in container["env"]


@pytest.mark.parametrize("off", ["analytics", "backups"])
def test_cron_jobs_are_made_for_analyses_as_well_as_for_backups(helm: str, off: str) -> None:
    kept = roles(objects(rendered(helm, f"{off}.enabled=false")))["ClusterRole lockkeeper"]
    assert "create" in kept["jobs"] & kept["cronjobs"]


def test_whoever_writes_the_roles_himself_writes_those_of_the_hook_too(helm: str) -> None:
    made = objects(rendered(helm, "rbac.create=false"))
    kinds = [each["kind"] for each in made]
    assert [kind for kind in kinds if "Role" in kind] == []
    assert kinds.count("Job") == 1
    assert kinds.count("ServiceAccount") == 2


def test_every_pod_says_what_it_takes(helm: str) -> None:
    made = objects(rendered(helm))
    for each in made:
        if each["kind"] in ("Deployment", "Job"):
            (container,) = each["spec"]["template"]["spec"]["containers"]
            assert container["resources"]["limits"]["memory"], each["kind"]


def test_each_release_has_a_lease_of_its_own_and_no_right_over_others(helm: str) -> None:
    names = []
    for release in ("lockkeeper", "blue"):
        made = objects(rendered(helm, name=release))
        (deployment,) = [each for each in made if each["kind"] == "Deployment"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        (lease,) = [each["value"] for each in container["env"] if each["name"].endswith("LEASE")]
        (role,) = [
            each
            for each in made
            if each["kind"] == "Role" and each["metadata"]["name"].endswith("-leader")
        ]
        rules = [rule for rule in role["rules"] if "resourceNames" in rule]
        assert [rule["resourceNames"] for rule in rules] == [[lease], [f"{lease}-authority"]]
        assert {verb for rule in role["rules"] if rule not in rules for verb in rule["verbs"]} == {
            "create"
        }
        names.append(lease)
    # That of the default release is what it always was.
    assert names == ["lockkeeper-operator", "blue-lockkeeper-operator"]


def test_helm_finds_nothing_to_complain_about(helm: str) -> None:
    done = subprocess.run(
        [helm, "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_an_api_server_takes_what_the_chart_makes(
    helm: str, plane_with_namespace: ControlPlane, settings: list[str]
) -> None:
    text = rendered(helm, *settings)
    answer = plane_with_namespace.kubectl("apply", "--dry-run=server", "-f", "-", text=text)
    assert len(answer.splitlines()) == len(objects(text))


def test_an_api_server_takes_the_plain_manifest(plane_with_namespace: ControlPlane) -> None:
    kinds = {each["kind"] for each in objects(MANIFEST.read_text("utf-8"))}
    assert {"Namespace", "CustomResourceDefinition", "ClusterRole", "Deployment"} <= kinds
    answer = plane_with_namespace.kubectl("apply", "--dry-run=server", "-f", str(MANIFEST))
    assert len(answer.splitlines()) == len(objects(MANIFEST.read_text("utf-8")))


def test_the_plain_manifest_is_what_the_chart_makes(helm: str) -> None:
    script = PROJECT / "charts" / "manifest.sh"
    done = subprocess.run([str(script), helm], capture_output=True, text=True, check=True)
    assert done.stdout == MANIFEST.read_text("utf-8"), "run `make manifests`"


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("replicas=0", "replicas"),
        ("replica=2", "replica"),
        ("watchNamespaces={Upper}", "watchNamespaces"),
        ("watchNamespaces={a,a}", "watchNamespaces"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("image.repository=", "repository"),
        ("log.level=loud", "level"),
        ("crds.instal=false", "instal"),
        ("podLabels.a=true", "podLabels"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(helm: str, setting: str, complaint: str) -> None:
    done = subprocess.run(
        [helm, "template", str(CHART), "--kube-version", "1.34.4", "--set", setting],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert complaint in done.stderr


def test_definitions_stay_when_the_release_goes_unless_that_is_wanted(helm: str) -> None:
    def policies(*settings: str) -> set[str | None]:
        return {
            each["metadata"].get("annotations", {}).get("helm.sh/resource-policy")
            for each in objects(rendered(helm, *settings))
            if each["kind"] == "CustomResourceDefinition"
        }

    assert policies() == {"keep"}
    assert policies("crds.keep=false") == {None}


def test_with_namespaces_given_the_operator_has_no_right_elsewhere(helm: str) -> None:
    made = objects(rendered(helm, "watchNamespaces={a,b}", "rbac.aggregate=false"))
    roles = [each for each in made if each["kind"].endswith(("Role", "RoleBinding"))]
    roles = [each for each in roles if not each["metadata"]["name"].endswith("-release")]
    assert {each["metadata"]["namespace"] for each in roles} == {"a", "b", SYSTEM}
    assert not [each for each in roles if each["kind"].startswith("Cluster")]
    (own,) = [
        each for each in roles
        if each["kind"] == "Role" and each["metadata"]["namespace"] == SYSTEM
    ]  # fmt: skip
    assert {resource for rule in own["rules"] for resource in rule["resources"]} == {
        "leases", "secrets",
    }  # fmt: skip
    (kept,) = [rule for rule in own["rules"] if "patch" in rule["verbs"]]
    assert kept["resourceNames"] == ["lockkeeper-operator-authority"]


def test_the_operator_may_not_do_everything(helm: str) -> None:
    (role,) = [
        each
        for each in objects(rendered(helm, "rbac.aggregate=false", "releaseDestinations=false"))
        if each["kind"] == "ClusterRole"
    ]
    verbs = {verb for rule in role["rules"] for verb in rule["verbs"]}
    assert not verbs & {"*", "escalate", "bind", "impersonate"}
    # Spark's drivers end their executors so, and nobody can give what he has not.
    many = [rule["resources"] for rule in role["rules"] if "deletecollection" in rule["verbs"]]
    assert many == [["configmaps", "pods"]]
    assert "*" not in {resource for rule in role["rules"] for resource in rule["resources"]}
    claims = next(rule for rule in role["rules"] if rule["resources"] == ["persistentvolumeclaims"])
    assert "delete" not in claims["verbs"]
