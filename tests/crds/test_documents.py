from pathlib import Path

import pytest

from lockkeeper_api import InvalidResourceError, combine, parse_resources

SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
BROKER = "apiVersion: lockkeeper.dev/v1alpha1\nkind: Broker\nmetadata: {name: main}\n"
DESTINATION = (
    "apiVersion: lockkeeper.dev/v1alpha1\nkind: Destination\nmetadata: {name: orders}\n"
    "spec:\n  brokerRef: {name: main}\n"
)


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidResourceError) as caught:
        parse_resources(text, "broker.yaml")
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def problem(text: str) -> str:
    (only,) = problems(text)
    return only


def test_several_documents_are_read_in_order() -> None:
    resources = parse_resources(f"---\n{BROKER}---\n\n---\n{DESTINATION}", "broker.yaml")
    (broker,) = resources.brokers
    (destination,) = resources.destinations
    assert broker.metadata.name == "main"
    assert (destination.name, destination.spec.kind) == ("orders", "Queue")
    assert destination.spec.policy is None
    assert resources.destinations_of(broker) == (destination,)


def test_resources_may_come_from_several_files() -> None:
    resources = combine([("a.yaml", DESTINATION), ("b.yaml", BROKER)])
    assert len(resources.brokers) == len(resources.destinations) == 1


def test_what_an_api_server_added_is_passed_over() -> None:
    text = BROKER.replace(
        "{name: main}", "{name: main, uid: a-b, generation: 3, creationTimestamp: x}"
    )
    resources = parse_resources(text + "status: {conditions: []}\n", "exported.yaml")
    assert resources.brokers[0].metadata.name == "main"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            "  replica: 2",
            "broker.yaml, line 5, document 1 (Broker main): spec.replica: "
            "no such field; did you mean replicas?",
        ),
        (
            "  journal:\n    recorder:\n      clockIntervall: 1s",
            "broker.yaml, line 7, document 1 (Broker main): spec.journal.recorder.clockIntervall: "
            "no such field; did you mean clockInterval?",
        ),
        (
            "  destinationPolicies:\n  - match: A\n  - match: B\n    deadLetters: {strat: Shared}",
            "broker.yaml, line 8, document 1 (Broker main): "
            "spec.destinationPolicies[1].deadLetters.strat: "
            "no such field; did you mean strategy?",
        ),
        (
            "  destinationPolicies:\n  - match: A.>.B",
            "broker.yaml, line 6, document 1 (Broker main): spec.destinationPolicies[0].match: "
            "'>' must be the last level, found 'A.>.B'",
        ),
        (
            "  listeners: 61616",
            "broker.yaml, line 5, document 1 (Broker main): spec.listeners: "
            "should be a valid list, found 61616",
        ),
        (
            "  locker: 1Gi",
            "broker.yaml, line 5, document 1 (Broker main): spec.locker: "
            "expected a mapping, found '1Gi'",
        ),
        (
            "  systemUsage: {memoryUsage: {limit: 64MB}}",
            "broker.yaml, line 5, document 1 (Broker main): spec.systemUsage.memoryUsage.limit: "
            "expected a size such as 512Ki, 64Mi or 1Gi, found '64MB'",
        ),
        (
            "  journal: {fileBytes: 2Gi}",
            "broker.yaml, line 5, document 1 (Broker main): spec.journal.fileBytes: "
            "expected 64Ki to 1Gi",
        ),
        (
            "  destinationPolicies: [{kind: Queue}]",
            "broker.yaml, line 5, document 1 (Broker main): spec.destinationPolicies[0].match: "
            "is required",
        ),
        (
            "  destinationPolicies: [{match: A, kind: queue}]",
            "broker.yaml, line 5, document 1 (Broker main): spec.destinationPolicies[0].kind: "
            "should be 'Queue' or 'Topic', found 'queue'",
        ),
        (
            "  limits: {zzz: 1}",
            "broker.yaml, line 5, document 1 (Broker main): spec.limits.zzz: no such field; "
            "known here: destinations, consumers, producers, temporaryDestinations, transactions",
        ),
    ],
)
def test_an_error_names_file_line_document_field_and_remedy(spec: str, expected: str) -> None:
    assert problem(f"{BROKER}spec:\n{spec}\n") == expected


def test_every_problem_of_every_document_is_reported() -> None:
    text = f"{BROKER}spec: {{replicas: 0, journel: {{}}}}\n---\n{DESTINATION}  kind: Stack\n"
    assert [line.split(": ")[1] for line in problems(text)] == [
        "spec.replicas", "spec.journel", "spec.kind",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BROKER.replace("Broker", "Brokr"), "did you mean Broker?"),
        (BROKER.replace("v1alpha1", "v1"), "apiVersion: expected lockkeeper.dev/v1alpha1, found"),
        ("- a\n", "expected a mapping with apiVersion and kind"),
        (BROKER.replace("main", "Main"), "metadata.name"),
        ("a: [", "no valid YAML"),
        ("a: !!python/name:os.system x", "no valid YAML"),
        ("[" * 5000, "no valid YAML"),
        (BROKER + "spec: {}\nspec: {}\n", "line 5: 'spec' is given twice"),
        (BROKER + "spec: {replicas: 1, replicas: 2}\n", "'replicas' is given twice"),
        (f"{BROKER}---\n{BROKER}", "Broker main is already in broker.yaml, line 1, document 1"),
        (f"{DESTINATION}---\n{DESTINATION}".replace("orders", "a", 1) + "  name: a\n",
         "queue a of Broker main is already in broker.yaml, line 1"),
        (f"{BROKER}---\n{DESTINATION}".replace("brokerRef: {name: main}", "brokerRef: {name: x}"),
         "spec.brokerRef.name: no Broker 'x' here, only main"),
    ],
)  # fmt: skip
def test_documents_that_are_no_resources_are_refused(text: str, expected: str) -> None:
    assert expected in problem(text)


def test_every_sample_loads() -> None:
    clusters = set(SAMPLES.glob("cluster-*.yaml"))
    for path in clusters:
        text = path.read_text("utf-8")
        assert "lockkeeper.dev/v1alpha1" not in text or parse_resources(text, path.name)
    streams = SAMPLES / "streams.yaml"
    (stream,) = parse_resources(streams.read_text("utf-8"), streams.name).destinations
    assert stream.spec.kind == "Stream"
    files = sorted(set(SAMPLES.glob("*.yaml")) - clusters - {streams})
    resources = combine((path.name, path.read_text("utf-8")) for path in files)
    assert {path.name for path in files} >= {"broker.yaml", "destinations.yaml"}
    (broker,) = resources.brokers
    assert broker.spec.replicas == 2
    assert len(resources.destinations_of(broker)) == len(resources.destinations) == 3
