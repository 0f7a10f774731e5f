"""YAML text to resources, and what is wrong with it: file, line, document, field."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import yaml
from pydantic import ValidationError

from lockkeeper_api.broker import Broker
from lockkeeper_api.broker_network import BrokerNetwork
from lockkeeper_api.complaints import complaint
from lockkeeper_api.destination import Destination
from lockkeeper_api.journal_analysis import JournalAnalysis
from lockkeeper_api.journal_backup import JournalBackup
from lockkeeper_api.meta import API_VERSION, ApiModel
from lockkeeper_api.yaml_text import Document, read_documents

KINDS: dict[str, type[ApiModel]] = {
    "Broker": Broker,
    "Destination": Destination,
    "BrokerNetwork": BrokerNetwork,
    "JournalAnalysis": JournalAnalysis,
    "JournalBackup": JournalBackup,
}
SERVER_METADATA = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
    "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
)  # fmt: skip
"""What an API server adds to metadata: dropped, so that `kubectl get -o yaml` can be loaded."""


class InvalidResourceError(ValueError):
    """One or more documents are no valid resources; *problems* holds a line for each reason."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one or more files, in their order."""

    brokers: tuple[Broker, ...]
    destinations: tuple[Destination, ...]
    analyses: tuple[JournalAnalysis, ...] = ()

    def destinations_of(self, broker: Broker) -> tuple[Destination, ...]:
        """Return the destinations that refer to *broker*."""
        return tuple(
            destination
            for destination in self.destinations
            if destination.spec.broker_ref.name == broker.metadata.name
            and destination.broker_namespace == broker.metadata.namespace
        )


def parse_resources(text: str, source: str) -> Resources:
    """Return the resources in *text*, YAML of any number of documents; *source* names it.

    Raises InvalidResourceError with every problem of every document.
    """
    return combine([(source, text)])


def _said_of_yaml(error: Exception) -> str:
    """Return what is wrong in a line, with the place if it is known."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return str(error) or "nested too deeply"


def combine(sources: Iterable[tuple[str, str]]) -> Resources:
    """Return the resources of several files, given as pairs of name and text.

    Raises InvalidResourceError with every problem of every document of every file.
    """
    problems: list[str] = []
    found: list[tuple[Document, ApiModel]] = []
    for source, text in sources:
        try:
            documents = list(read_documents(text, source))
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            problems.append(f"{source}: no valid YAML: {_said_of_yaml(error)}")
            continue
        for document in documents:
            resource = _resource(document, problems)
            if resource is not None:
                found.append((document, resource))
    problems.extend(_conflicts(found))
    if problems:
        raise InvalidResourceError(problems)
    return Resources(
        tuple(resource for _, resource in found if isinstance(resource, Broker)),
        tuple(resource for _, resource in found if isinstance(resource, Destination)),
        tuple(resource for _, resource in found if isinstance(resource, JournalAnalysis)),
    )


def _resource(document: Document, problems: list[str]) -> ApiModel | None:
    """Return the resource that *document* describes, or None with the reasons in *problems*."""
    value = document.value
    if not isinstance(value, dict):
        problems.append(f"{document.where()}: expected a mapping with apiVersion and kind")
        return None
    kind = value.get("kind")
    if value.get("apiVersion") != API_VERSION or kind not in KINDS:
        problems.extend(_header_problems(document, value))
        return None
    try:
        return KINDS[kind].model_validate(_without_server_fields(value))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            path, reason = complaint(KINDS[kind], detail)
            problems.append(f"{document.where(detail['loc'])}: {path}: {reason}")
        return None


def _header_problems(document: Document, value: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with apiVersion and kind."""
    version, kind = value.get("apiVersion"), value.get("kind")
    if version != API_VERSION:
        where = document.where(("apiVersion",))
        yield f"{where}: apiVersion: expected {API_VERSION}, found {version!r}"
    if kind not in KINDS:
        close = get_close_matches(str(kind), KINDS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        where = document.where(("kind",))
        yield f"{where}: kind: expected {' or '.join(KINDS)}, found {kind!r}{hint}"


def _without_server_fields(value: dict[str, Any]) -> dict[str, Any]:
    """Return *value* without its status and what an API server adds to metadata."""
    kept = {key: item for key, item in value.items() if key != "status"}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        kept["metadata"] = {
            key: item for key, item in metadata.items() if key not in SERVER_METADATA
        }
    return kept


def _conflicts(found: list[tuple[Document, ApiModel]]) -> Iterator[str]:
    """Yield what is wrong between resources that are each valid."""
    brokers = {
        (resource.metadata.namespace, resource.metadata.name)
        for _, resource in found
        if isinstance(resource, Broker)
    }
    seen: dict[tuple[object, ...], Document] = {}
    for document, resource in found:
        for identity, what in _identities(resource):
            if identity in seen:
                earlier = seen[identity]
                yield f"{document.where()}: {what} is already in {earlier.where()}"
            seen.setdefault(identity, document)
        if isinstance(resource, Destination) and brokers:
            key = (resource.broker_namespace, resource.spec.broker_ref.name)
            if key not in brokers:
                known = ", ".join(sorted(name for _, name in brokers))
                where = document.where(("spec", "brokerRef", "name"))
                yield f"{where}: spec.brokerRef.name: no Broker {key[1]!r} here, only {known}"


def _identities(resource: ApiModel) -> Iterator[tuple[tuple[object, ...], str]]:
    """Yield what may be there only once, with its name for people."""
    if isinstance(resource, Broker):
        metadata = resource.metadata
        yield ("Broker", metadata.namespace, metadata.name), f"Broker {metadata.name}"
    if isinstance(resource, BrokerNetwork | JournalAnalysis | JournalBackup):
        metadata, kind = resource.metadata, resource.kind
        yield (kind, metadata.namespace, metadata.name), f"{kind} {metadata.name}"
    if isinstance(resource, Destination):
        metadata, spec = resource.metadata, resource.spec
        name = metadata.name
        yield ("Destination", metadata.namespace, name), f"Destination {name}"
        on = (resource.broker_namespace, spec.broker_ref.name)
        served = ("served", *on, spec.kind, resource.name)
        yield served, f"{spec.kind.lower()} {resource.name} of Broker {spec.broker_ref.name}"
