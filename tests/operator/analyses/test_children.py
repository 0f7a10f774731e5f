from typing import Any

import pytest
import yaml
from analysis_objects import (
    ENGINES,
    FROM_BROKER,
    JOURNAL,
    NIGHTLY,
    all_of,
    analysis_subject,
    templates,
)

from lockkeeper_api.journal_analysis import JournalAnalysisSpec
from lockkeeper_operator.analyses.desired.children import run
from lockkeeper_operator.analyses.desired.spark_settings import native_settings, spark_settings
from lockkeeper_operator.analyses.engine import (
    APACHE_API,
    KUBEFLOW_API,
    ChosenEngine,
    chosen_engine,
    missing_api,
)
from lockkeeper_operator.brokers.desired.analysis import analysis_name
from lockkeeper_operator.brokers.journal import Journal, claim_name, journal_of
from lockkeeper_operator.kubernetes.manifests import Manifest

BOTH = frozenset({KUBEFLOW_API, APACHE_API})
BROKER: Manifest = {
    "metadata": {"name": "departures"},
    "spec": {"storage": {"path": "data/kahadb"}, "security": {"fsGroup": 999}},
}


def claim(*modes: str) -> Manifest:
    return {"metadata": {"name": "c"}, "spec": {"accessModes": list(modes)}}


@pytest.mark.parametrize("engine", ENGINES)
def test_everything_belongs_to_the_analysis_and_is_labelled_as_its_own(
    engine: ChosenEngine,
) -> None:
    for child in all_of(analysis_subject(engine)).values():
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == (
            "JournalAnalysis", "uid-of-nightly", True,
        )  # fmt: skip
        # A Broker of the same name has other children: no Broker's name has a dot.
        assert child["metadata"]["labels"]["app.kubernetes.io/instance"] == "analysis.nightly"


@pytest.mark.parametrize(
    ("engine", "schedule", "kind"),
    [
        ("sparkApplication", None, "SparkApplication"),
        ("sparkApplication", NIGHTLY, "ScheduledSparkApplication"),
        ("apache", None, "SparkApplication"),
        ("native", None, "Job"),
        ("native", NIGHTLY, "CronJob"),
        ("local", None, "Job"),
        ("local", NIGHTLY, "CronJob"),
    ],
)
def test_each_engine_has_its_kind_of_run(engine: ChosenEngine, schedule: Any, kind: str) -> None:
    assert run(analysis_subject(engine, schedule=schedule))["kind"] == kind


@pytest.mark.parametrize("engine", ENGINES)
def test_the_journal_is_read_only_wherever_it_is_mounted(engine: ChosenEngine) -> None:
    found = templates(analysis_subject(engine))
    for template in found.values():
        spec = template["spec"]
        (container,) = spec["containers"]
        (mount,) = [each for each in container["volumeMounts"] if each["name"] == "journal"]
        assert mount["readOnly"] is True
        (volume,) = [each for each in spec["volumes"] if each["name"] == "journal"]
        assert volume["persistentVolumeClaim"] == {
            "claimName": "departures-journal", "readOnly": True,
        }  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_pods_are_restricted_and_only_drivers_have_a_token(engine: ChosenEngine) -> None:
    for role, template in templates(analysis_subject(engine)).items():
        spec = template["spec"]
        security = spec["securityContext"]
        assert (security["runAsUser"], security["runAsNonRoot"]) == (185, True)
        assert security["fsGroup"] == 10001
        (container,) = spec["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert spec["automountServiceAccountToken"] is (role == "driver")


def test_pods_go_where_a_volume_for_one_node_is() -> None:
    for engine in ENGINES:
        for template in templates(analysis_subject(engine)).values():
            node = template["spec"]["affinity"]["nodeAffinity"]
            (term,) = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            assert term["matchFields"][0]["values"] == ["a"]


def test_executors_follow_their_driver_where_nobody_knows_the_node_yet() -> None:
    scattered = analysis_subject("apache", Journal(claim="c", one_node=True))
    affinity = templates(scattered)["executor"]["spec"]["affinity"]
    (term,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"]["lockkeeper.dev/spark-role"] == "driver"
    shared = analysis_subject("apache", Journal(claim="c"), output={"path": "s3://a/b"})
    assert all("affinity" not in each["spec"] for each in templates(shared).values())


def test_who_writes_and_who_serves_results_are_on_one_node() -> None:
    found = all_of(analysis_subject())
    page = found["Deployment", "nightly-page"]["spec"]["template"]
    driver = templates(analysis_subject())["driver"]
    for template in (page, driver):
        affinity = template["spec"]["affinity"]["podAffinity"]
        (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
        wanted = term["labelSelector"]["matchLabels"].items()
        assert wanted <= template["metadata"]["labels"].items()


def test_results_can_be_written_where_they_go_and_nowhere_else() -> None:
    given = analysis_subject(output={"claim": {"name": "results", "path": "a/"}})
    driver = templates(given)["driver"]["spec"]
    (container,) = driver["containers"]
    writable = {each["name"] for each in container["volumeMounts"] if not each.get("readOnly")}
    assert writable == {"temporary", "results"}
    assert "/var/lib/lockkeeper-results/a" in container["args"]
    elsewhere = templates(analysis_subject(output={"path": "s3://a/b"}))["driver"]["spec"]
    assert "results" not in {each["name"] for each in elsewhere["volumes"]}
    assert "s3://a/b" in elsewhere["containers"][0]["args"]


def test_drivers_may_only_do_what_spark_needs() -> None:
    role = all_of(analysis_subject())["Role", "nightly-analysis"]
    resources = {name for rule in role["rules"] for name in rule["resources"]}
    assert resources == {"pods", "configmaps", "services"}
    alone = all_of(analysis_subject("local"))["Role", "nightly-analysis"]
    assert [(rule["resources"], rule["verbs"]) for rule in alone["rules"]] == [
        (["pods"], ["get", "patch"])
    ]


def test_a_driver_of_ours_brings_settings_and_a_template_for_its_executors() -> None:
    found = all_of(analysis_subject(sparkConf={"my.key": "a=b: c"}))
    data = found["ConfigMap", "nightly-analysis"]["data"]
    lines = data["spark.properties"].splitlines()
    assert "my.key=a\\=b\\:\\ c" in lines
    assert "spark.driver.host=nightly-driver.airport.svc.cluster.local" in lines
    assert "spark.executor.memoryOverhead=960m" in lines
    executor = yaml.safe_load(data["executor.yaml"])
    assert executor["spec"]["containers"][0]["name"] == "spark-kubernetes-executor"
    assert found["Service", "nightly-driver"]["spec"]["clusterIP"] == "None"


def test_a_process_of_spark_without_memory_ends_rather_than_go_on_for_ever() -> None:
    settings = native_settings(
        analysis_subject(sparkConf={"spark.driver.extraJavaOptions": "-Da=b"})
    )
    for process in ("driver", "executor"):
        options = settings[f"spark.{process}.defaultJavaOptions"]
        assert "-XX:+ExitOnOutOfMemoryError" in options.split()
    assert settings["spark.driver.extraJavaOptions"] == "-Da=b"


FOR_PLANNING = "spark.scheduler.minRegisteredResourcesRatio", "spark.default.parallelism"


@pytest.mark.parametrize(
    ("executors", "cores"),
    [
        ({}, "2"),
        ({"instances": 3, "resources": {"cores": 4}}, "12"),
        ({"dynamicAllocation": {"min": 1, "max": 5}, "resources": {"cores": 2}}, "10"),
    ],
)
def test_a_driver_plans_while_its_executors_start_and_knows_how_many_cores_they_have(
    executors: dict[str, Any], cores: str
) -> None:
    settings = spark_settings(analysis_subject(executors=executors))
    assert [settings[name] for name in FOR_PLANNING] == ["0", cores]
    assert "-XX:TieredStopAtLevel=1" in settings["spark.driver.defaultJavaOptions"].split()
    # The driver knows how much there is to read, and divides it.
    assert "spark.sql.shuffle.partitions" not in settings
    own = dict.fromkeys(FOR_PLANNING, "77")
    given = spark_settings(analysis_subject(executors=executors, sparkConf=own))
    assert [given[name] for name in FOR_PLANNING] == ["77", "77"]


def test_a_driver_that_works_alone_is_told_nothing_of_executors() -> None:
    settings = spark_settings(analysis_subject("local"))
    assert not settings.keys() & set(FOR_PLANNING)
    assert settings["spark.driver.defaultJavaOptions"] == "-XX:+ExitOnOutOfMemoryError"


def test_settings_that_the_operator_relies_on_win() -> None:
    given = analysis_subject(sparkConf={"spark.driver.host": "elsewhere", "a": "b"})
    settings = native_settings(given)
    assert settings["a"] == "b"
    assert settings["spark.driver.host"].startswith("nightly-driver.")


def test_the_drivers_last_lines_are_kept_and_memory_has_room_for_python() -> None:
    (container,) = templates(analysis_subject())["driver"]["spec"]["containers"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert container["resources"]["limits"] == {"memory": "1984Mi"}
    names = [each["name"] for each in container["env"]]
    assert names == [
        "HOME", "LOCKKEEPER_POD", "LOCKKEEPER_NAMESPACE", "LOCKKEEPER_RUN",
        "SPARK_DRIVER_BIND_ADDRESS",
    ]  # fmt: skip


def test_the_specs_patch_is_laid_over_drivers_and_executors() -> None:
    patch = {"spec": {"containers": [{"name": "sidecar", "image": "x"}]}}
    for engine in ENGINES:
        for template in templates(analysis_subject(engine, pods={"templatePatch": patch})).values():
            names = [each["name"] for each in template["spec"]["containers"]]
            assert names[1:] == ["sidecar"]


def test_a_single_run_is_another_one_when_it_would_find_out_something_else() -> None:
    first = analysis_subject().run
    assert analysis_subject(since="24h").run != first
    for same in ({"suspend": True}, {"ttlSecondsAfterFinished": 9}, {"backoffLimit": 5}):
        assert analysis_subject(**same).run == first
    assert analysis_subject(schedule=NIGHTLY).run == "nightly"


def test_the_engine_is_what_the_cluster_has() -> None:
    single, regular = analysis_subject().spec, analysis_subject(schedule=NIGHTLY).spec
    assert chosen_engine(single, BOTH) == "sparkApplication"
    assert chosen_engine(single, {APACHE_API}) == "apache"
    assert chosen_engine(single, frozenset()) == "native"
    assert chosen_engine(regular, {APACHE_API}) == "native"
    assert (
        chosen_engine(JournalAnalysisSpec.model_validate({**FROM_BROKER, "engine": "local"}), BOTH)
        == "local"
    )
    assert chosen_engine(single, BOTH, before="native") == "native"
    assert chosen_engine(single, frozenset(), before="apache") == "native"
    assert missing_api("apache", {KUBEFLOW_API}) == APACHE_API
    assert missing_api("native", frozenset()) == ""


def test_a_brokers_journal_is_found_by_its_storage() -> None:
    source = analysis_subject().spec.source
    assert claim_name("nightly", source, BROKER) == "departures-journal"
    existing = {"metadata": {}, "spec": {"storage": {"existingClaim": "old"}}}
    assert claim_name("nightly", source, existing) == "old"
    found = journal_of("nightly", source, BROKER, claim("ReadWriteOnce"), "b")
    assert found == Journal("departures-journal", "data/kahadb", "", 999, True, "b")
    shared = journal_of("nightly", source, BROKER, claim("ReadWriteMany"), "b")
    assert (shared.one_node, shared.node) == (False, "")


@pytest.mark.parametrize(
    ("broker", "found", "problem"),
    [
        (None, None, "BrokerMissing"),
        (BROKER, None, "ClaimMissing"),
        (BROKER, claim("ReadWriteOncePod"), "ClaimExclusive"),
    ],
)
def test_why_a_journal_cannot_be_read_has_a_name(
    broker: Manifest | None, found: Manifest | None, problem: str
) -> None:
    journal = journal_of("nightly", analysis_subject().spec.source, broker, found)
    assert journal.problem == problem
    assert journal.why


def test_a_snapshot_becomes_a_claim_of_the_analysiss_own() -> None:
    source = {"snapshot": {"name": "then", "size": "5Gi", "className": "fast"}}
    spec: dict[str, Any] = {"source": source}
    made = journal_of("nightly", analysis_subject(**spec).spec.source)
    given = analysis_subject(journal=made, **spec)
    found = all_of(given)["PersistentVolumeClaim", "nightly-snapshot"]["spec"]
    assert found["dataSource"]["name"] == "then"
    assert found["resources"]["requests"]["storage"] == "5Gi"
    (container,) = templates(given)["driver"]["spec"]["containers"]
    assert {"name": "journal", "mountPath": "/var/lib/lockkeeper", "readOnly": True} in (
        container["volumeMounts"]
    )


def test_what_is_asked_reaches_the_application() -> None:
    given = analysis_subject(reports=["totals"], since="24h", destination="A,B.>")
    (container,) = templates(given)["driver"]["spec"]["containers"]
    arguments = container["args"]
    assert arguments[0] == "driver"
    assert arguments[arguments.index("local:///opt/lockkeeper/application.py") + 1 :] == [
        *("--journal", "/var/lib/lockkeeper/kahadb", "--out", "/var/lib/lockkeeper-results"),
        *("--report", "totals", "--since", "24h", "--destination", "A,B.>"),
    ]
    assert JOURNAL.path == "kahadb"


@pytest.mark.parametrize(
    ("bodies", "asked"),
    [
        (None, []),
        ({}, ["--bodies"]),
        ({"masks": ["$.a.*", "*pin"]}, ["--bodies", "--mask", "$.a.*", "--mask", "*pin"]),
    ],
)
def test_fields_of_bodies_are_asked_for_with_what_is_hidden(
    bodies: dict[str, Any] | None, asked: list[str]
) -> None:
    (container,) = templates(analysis_subject(bodies=bodies))["driver"]["spec"]["containers"]
    end = container["args"].index("/var/lib/lockkeeper-results") + 1
    assert container["args"][end:] == asked


@pytest.mark.parametrize("engine", ENGINES)
def test_a_history_is_written_by_drivers_and_read_by_executors(engine: ChosenEngine) -> None:
    history = {"claim": {"name": "kept", "path": "records/"}}
    given = analysis_subject(engine, history=history)
    for role, template in templates(given).items():
        spec = template["spec"]
        (container,) = spec["containers"]
        (mount,) = [each for each in container["volumeMounts"] if each["name"] == "history"]
        assert mount["mountPath"] == "/var/lib/lockkeeper-history"
        assert mount.get("readOnly", False) is (role == "executor")
        (volume,) = [each for each in spec["volumes"] if each["name"] == "history"]
        assert volume["persistentVolumeClaim"] == {"claimName": "kept"}
    page = all_of(given)["Deployment", "nightly-page"]["spec"]["template"]["spec"]
    assert "history" not in {each["name"] for each in page["volumes"]}


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        (
            {"history": {"claim": {"name": "kept", "path": "records/"}}},
            ["--history", "/var/lib/lockkeeper-history/records", "--broker", "departures"],
        ),
        (
            {"history": {"path": "s3://a/b?region=c", "broker": "north"}},
            ["--history", "s3://a/b?region=c", "--broker", "north"],
        ),
        (
            {"source": {"path": "s3://a/kahadb"}, "history": {"path": "s3://a/b"}},
            ["--history", "s3://a/b", "--broker", "nightly"],
        ),
    ],
)
def test_drivers_are_told_where_records_are_kept_and_under_which_name(
    spec: dict[str, Any], asked: list[str]
) -> None:
    (container,) = templates(analysis_subject(**spec))["driver"]["spec"]["containers"]
    end = container["args"].index("/var/lib/lockkeeper-results") + 1
    assert container["args"][end:] == asked


def test_names_for_brokers_analyses_fit() -> None:
    assert analysis_name("departures") == "departures-regular"
    long = {analysis_name("b" * 44 + end) for end in "xy"}
    assert len(long) == 2
    assert all(len(name) <= 36 for name in long)
