"""docs/analytics.md and docs/reference/tables.md list the tables, columns and options there are."""

from pathlib import Path

from lockkeeper_analytics.reading.records import KINDS
from lockkeeper_analytics.reading.schema import COLUMNS
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.tables import RECORDS, TABLES
from lockkeeper_analytics.tables.options import NAMES

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "analytics.md").read_text("utf-8")


def test_every_column_is_told_with_its_type_and_meaning():
    for column in COLUMNS.values():
        assert f"| `{column.name}` | {column.ddl} | {column.meaning} |" in TEXT


def test_options_kinds_and_reports_are_told():
    for name in (*NAMES, *KINDS.values(), *REPORTS):
        assert f"`{name}`" in TEXT or name == "paths", name


def test_every_table_has_a_section_with_its_columns():
    sections = (DOCS / "reference" / "tables.md").read_text("utf-8").split("\n## ")[1:]
    told = {section.partition("\n")[0]: section for section in sections}
    assert list(told) == [name for name in TABLES if name != RECORDS]
    for name, section in told.items():
        listed = [line for line in section.splitlines() if line.startswith("| `")]
        columns = TABLES[name].columns.values()
        assert listed == [f"| `{each.name}` | {each.ddl} | {each.meaning} |" for each in columns]
        assert f"`{name}`" in TEXT
