"""The rules of docs/STYLE.md that a program can see: subjects, length, verbs with objects."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperCommand, TyperGroup

from lockkeeper.cli.commands import whole
from lockkeeper.journal.counters import COUNTERS

PROJECT = Path(__file__).parents[1]
BROKER = PROJECT / "broker_image" / "lockkeeper"

WITH_PLAIN_DOCS = (BROKER, PROJECT / "crds")
WITH_OBJECTS = tuple(
    BROKER / room
    for room in ("cli", "client", "journal", "message", "protocols", "server", "transport")
)

WORDS_MAX = 20
RIDDLE = re.compile(
    r"(What|Which|How|Whose|Whom?|When|Where|Why|Whether|That|Those|These|This|Until"
    r"|It|Its|They|Their|Them|Such)\b"
)
VERB_WITHOUT_OBJECT = re.compile(r"\w+( (it|them|so|one|that|this))?\.")
KINDS = {
    *("Broker.", "Destination.", "BrokerNetwork.", "JournalAnalysis.", "JournalBackup."),
    *("JMSType.", "JMSReplyTo.", "JMSCorrelationID."),
}
"""Texts of one word that are names."""
GENERIC_VERBS = {"take", "check", "tell", "put", "note", "look"}


def begins_badly(text: str) -> bool:
    """Tell whether a text begins with no noun or verb of its own."""
    return RIDDLE.match(text) is not None


def faults(text: str) -> list[str]:
    """Return what is wrong with a text that people read on its own."""
    found = ["begins with no noun"] if begins_badly(text) else []
    if VERB_WITHOUT_OBJECT.fullmatch(text) and text not in KINDS:
        found.append("names no object")
    for sentence in re.split(r"(?<=[.;:])\s+", text):
        if len(sentence.split()) > WORDS_MAX:
            found.append(f"has a sentence of {len(sentence.split())} words")
    return found


def public_docs(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and docs of every class and function that others may use."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        if docs := ast.get_docstring(node):
            yield node.lineno, node.name, docs
        if isinstance(node, ast.ClassDef):
            yield from public_docs(node)


def bare_verbs(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of every function that is called by a generic verb alone."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.strip("_") in GENERIC_VERBS
        ):
            yield node.lineno, node.name


def sources(*rooms: Path) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        for path in sorted(room.rglob("*.py")):
            yield path.relative_to(PROJECT).as_posix(), ast.parse(path.read_text("utf-8"))


def help_texts(command: TyperCommand | TyperGroup, name: str) -> Iterator[tuple[str, str]]:
    """Yield every help text of a command, its options and its sub-commands."""
    for line in re.split(r"\n\s*\n", command.help or ""):
        if not line.startswith("Example:"):
            yield name, " ".join(line.split())
    for parameter in command.params:
        if text := getattr(parameter, "help", None):
            yield f"{name} {parameter.name}", text
    for each, inner in getattr(command, "commands", {}).items():
        yield from help_texts(inner, f"{name} {each}")


def metric_helps() -> Iterator[tuple[str, str]]:
    """Yield the texts of `server/metrics.py` that are sentences, and those of the counters."""
    tree = ast.parse((BROKER / "server" / "metrics.py").read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docs:
            continue
        if isinstance(node.value, str) and re.fullmatch(r"[A-Z1].+\.", node.value):
            yield f"server/metrics.py:{node.lineno}", node.value
    for counter in COUNTERS:
        yield counter.name, f"{counter.meaning.capitalize()}."


def descriptions(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Yield every description in the schema of a resource."""
    if text := schema.get("description"):
        yield path, text
    for name, inner in schema.get("properties", {}).items():
        yield from descriptions(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(key), dict):
            yield from descriptions(inner, f"{path}[]")


def described_fields() -> Iterator[tuple[str, str]]:
    for path in sorted((PROJECT / "crds").glob("*.yaml")):
        definition = yaml.safe_load(path.read_text("utf-8"))
        kind = definition["spec"]["names"]["kind"]
        for version in definition["spec"]["versions"]:
            yield from descriptions(version["schema"]["openAPIV3Schema"], kind)


def complaints(texts: Iterator[tuple[str, str]]) -> list[str]:
    return [f"{where} {fault}: {text}" for where, text in texts for fault in faults(text)]


def test_public_docs_begin_with_a_noun_or_a_verb() -> None:
    riddles = [
        f"{path}:{line} {name}: {docs.splitlines()[0]}"
        for path, tree in sources(*WITH_PLAIN_DOCS)
        for line, name, docs in public_docs(tree)
        if begins_badly(docs)
    ]
    assert not riddles, "\n" + "\n".join(riddles)


def test_help_texts_are_plain() -> None:
    texts = list(help_texts(whole(), "lockkeeper"))
    assert len(texts) > 100
    found = complaints(iter(texts))
    assert not found, "\n" + "\n".join(found)


def test_helps_of_metrics_are_plain() -> None:
    texts = list(metric_helps())
    assert len(texts) > 25
    found = complaints(iter(texts))
    assert not found, "\n" + "\n".join(found)


def test_descriptions_of_fields_are_plain() -> None:
    texts = list(described_fields())
    assert len(texts) > 300
    found = complaints(iter(texts))
    assert not found, "\n" + "\n".join(found)


def test_generic_verbs_have_objects() -> None:
    bare = [
        f"{path}:{line} {name}"
        for path, tree in sources(*WITH_OBJECTS)
        for line, name in bare_verbs(tree)
    ]
    assert not bare, "\n" + "\n".join(bare)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("What the process is now.", "begins with no noun"),
        ("Those that are done.", "begins with no noun"),
        ("Remove it.", "names no object"),
        ("Reload.", "names no object"),
        (f"A text of {'very ' * 18}many words.", "has a sentence of 23 words"),
        ("Size of the journal in bytes; 0 for no limit.", None),
    ],
)
def test_a_planted_text_is_seen(text: str, fault: str | None) -> None:
    assert faults(text) == ([] if fault is None else [fault])


def test_planted_docs_and_verbs_are_seen() -> None:
    tree = ast.parse(
        "class Lock:\n"
        '    """Who holds it."""\n'
        "    async def check(self): ...\n"
        "    def _hidden(self):\n"
        '        """What nobody reads."""\n'
    )
    assert [(name, begins_badly(docs)) for _, name, docs in public_docs(tree)] == [("Lock", True)]
    assert list(bare_verbs(tree)) == [(3, "check")]
