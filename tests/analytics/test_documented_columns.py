"""docs/analytics.md lists the columns and options that there are."""

from pathlib import Path

from lockkeeper_analytics.options import NAMES
from lockkeeper_analytics.records import KINDS
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.schema import COLUMNS

TEXT = (Path(__file__).parents[2] / "docs" / "analytics.md").read_text("utf-8")


def test_every_column_is_told_with_its_type_and_meaning():
    for column in COLUMNS.values():
        assert f"| `{column.name}` | {column.ddl} | {column.meaning} |" in TEXT


def test_options_kinds_and_reports_are_told():
    for name in (*NAMES, *KINDS.values(), *REPORTS):
        assert f"`{name}`" in TEXT or name == "paths", name
