"""The pages on OpenWire and KahaDB: what the code cites is there, and the tables are true."""

import re
from pathlib import Path

import pytest

from lockkeeper.journal.schema import SCHEMAS
from lockkeeper.message.openwire import LAYOUTS
from lockkeeper.message.openwire.structure import Layout

PROJECT = Path(__file__).parents[1]
REFERENCE = PROJECT / "docs" / "reference"
CITED = re.compile(r"(openwire|kahadb)\.md,? section (\d+(?:\.\d+)*)")
ROOTS = ("broker_image", "analytics", "operator", "crds", "tests", "bench", "docs")
WIRE_NAMES = {
    "FLAG": "bool",
    "INT8": "byte",
    "INT32": "int",
    "INT64": "long",
    "TEXT": "string",
    "REQUIRED_TEXT": "string",
    "OCTETS": "bytes",
    "REQUIRED_OCTETS": "bytes",
    "PROPERTIES": "bytes",
}
SHARED = {"command_id", "response_required"}


def cited() -> set[tuple[str, str]]:
    """Return every section that a file of ours cites, with its page."""
    files = [file for root in ROOTS for file in (PROJECT / root).rglob("*.[pm][yd]")]
    return {found for file in files for found in CITED.findall(file.read_text("utf-8"))}


def sections(page: str) -> set[str]:
    """Return the numbers of the sections of a page."""
    text = (REFERENCE / f"{page}.md").read_text("utf-8")
    return set(re.findall(r"^##+ (\d+(?:\.\d+)*)\.? ", text, re.MULTILINE))


def test_every_section_that_is_cited_exists() -> None:
    found = cited()
    assert len(found) > 20
    assert {each for each in found if each[1] not in sections(each[0])} == set()


def row(layout: Layout) -> str:
    """Return what the table of structures says of one."""
    message = set() if layout.name == "ActiveMQMessage" else names_of_messages()
    own = []
    for field in layout.fields:
        if field.name in SHARED or (layout.name.startswith("ActiveMQ") and field.name in message):
            continue
        since = f" (v{field.since})" if field.since > 1 else ""
        until = f" (to v{field.until})" if field.until < 12 else ""
        kind = WIRE_NAMES.get(field.wire.name, field.wire.name.lower())
        own.append(f"{field.name} {kind}{since}{until}")
    return f"| {layout.type_id} | {layout.name} | {', '.join(own) or 'none'} |"


def names_of_messages() -> set[str]:
    """Return the fields that every message has."""
    return {field.name for field in LAYOUTS[23].fields}


@pytest.mark.parametrize("type_id", sorted(LAYOUTS))
def test_every_structure_is_in_the_table_with_its_fields(type_id: int) -> None:
    text = (REFERENCE / "openwire.md").read_text("utf-8")
    assert row(LAYOUTS[type_id]) in text.splitlines()


def test_every_record_of_the_journal_is_in_the_table() -> None:
    text = (REFERENCE / "kahadb.md").read_text("utf-8")
    section = text[text.index("## 3.") : text.index("## 4.")]
    listed: set[int] = set()
    for numbers in re.findall(r"^\| ([\d, to]+) \|", section, re.MULTILINE):
        first, *others = map(int, re.findall(r"\d+", numbers))
        last = others[-1] if others else first
        listed.update(range(first, last + 1))
    assert {each.command for each in SCHEMAS} <= listed


def test_the_files_that_the_glossary_names_are_there() -> None:
    text = (PROJECT / "docs" / "GLOSSARY.md").read_text("utf-8")
    named = re.findall(r"`([a-z_]+/[\w/]*(?:\.py)?)`", text)
    assert len(named) > 15
    roots = (PROJECT / "broker_image" / "lockkeeper", PROJECT)
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []
