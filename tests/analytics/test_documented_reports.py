"""The documentation lists every report with its question, in the order of the page."""

import re
from pathlib import Path

from lockkeeper_analytics.reports import REPORTS

DOCUMENT = Path(__file__).parents[2] / "docs" / "analytics.md"


def test_the_table_of_reports_is_that_of_the_code():
    text = DOCUMENT.read_text("utf-8").partition("| report | question |\n|---|---|\n")[2]
    documented = re.findall(r"^\| `(\w+)` \| (.*) \|$", text.partition("\n\n")[0], re.MULTILINE)
    assert documented == [(report.name, report.question) for report in REPORTS.values()]


def test_every_report_is_a_question_with_a_sentence_for_no_rows():
    for name, report in REPORTS.items():
        assert name == report.name
        assert report.question.endswith("?")
        assert report.nothing.endswith(".")
        assert report.columns
