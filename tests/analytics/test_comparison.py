"""This run beside a former one: figures, what can be compared, what the page and a folder say."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from browser import CHROMIUM, answer
from journal_lived import lived
from journal_reports import page_of, reports_of, run_behind

from lockkeeper_analytics.comparison.changes import FIGURES, compare
from lockkeeper_analytics.comparison.runs import Run, found_run, given_run, run_of
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.job import analyze
from lockkeeper_analytics.page.comparison import told_change, told_conditions, told_rows
from lockkeeper_analytics.page.story import NEEDED

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
FIGURES_TOLD = {
    "sent": 1000,
    "acknowledged": 900,
    "dead_lettered": 10,
    "waiting": 90,
    "waiting_dead_letters": 10,
    "in_doubt": 0,
    "redelivered": None,
    "takeovers": 0,
    "longest_silence_ms": None,
    "oldest_waiting_at": "2026-11-20T11:50:00Z",
    "peak_per_second": 2.5,
}


def run(hours=2.0, ends=NOON, **figures):
    begins = ends - timedelta(hours=hours)
    return Run(NOON, ("data",), "", begins, ends, {**FIGURES_TOLD, **figures})


def test_figures_of_times_equally_long_are_compared_as_they_are():
    later = run(ends=NOON + timedelta(hours=2), sent=1200, dead_lettered=5, waiting=120)
    comparison = compare(run(), later)
    assert not comparison.is_per_hour
    sent, letters = comparison.change_of("sent"), comparison.change_of("dead_lettered")
    assert (sent.direction, sent.is_worse, told_change(sent)) == (
        "more",
        None,
        "200 more (+20.0 %)",
    )
    assert (letters.is_worse, told_change(letters)) == (False, "5 fewer (\u221250.0 %)")
    waiting = comparison.change_of("all_waiting")
    assert (waiting.is_worse, told_change(waiting)) == (True, "30 more (+30.0 %)")
    oldest = comparison.change_of("oldest")
    assert (oldest.former, oldest.now, oldest.is_worse) == (600_000, 7_800_000, True)
    assert told_change(comparison.change_of("acknowledged")) == "as before"
    assert comparison.shared_milliseconds == 0


def test_counts_over_times_of_other_lengths_are_compared_for_an_hour():
    comparison = compare(run(), run(hours=4, sent=1600, waiting=180))
    assert comparison.is_per_hour
    sent = comparison.change_of("sent")
    assert sent.rates == (500, 400)
    assert (sent.direction, told_change(sent)) == ("less", "100 fewer an hour (\u221220.0 %)")
    assert comparison.change_of("all_waiting").rates is None
    assert told_rows(comparison)[0][:3] == ("Sent", "1,000 (500 an hour)", "1,600 (400 an hour)")
    said = " ".join(told_conditions(comparison))
    assert "2 h 0 min are the same time" in said
    assert "not equally long: counts over time are compared for an hour" in said


def test_what_has_no_time_is_not_compared_over_time():
    nowhere = replace(run(sent=5000), begins=None)
    comparison = compare(run(), nowhere)
    sent = comparison.change_of("sent")
    assert (sent.direction, told_change(sent)) == (None, "\N{EN DASH}")
    assert comparison.change_of("all_waiting").direction == "same"
    assert "counts over time are not compared" in " ".join(told_conditions(comparison))


def test_what_one_run_does_not_know_is_not_compared():
    comparison = compare(run(), run(redelivered=7))
    assert comparison.change_of("redelivered").direction is None
    grown = compare(run(takeovers=0, in_doubt=0), run(takeovers=2, in_doubt=5))
    assert told_change(grown.change_of("takeovers")) == "2 more"
    assert told_change(compare(run(sent=3), run(sent=300)).change_of("sent")) == (
        "297 more (\N{MULTIPLICATION SIGN} 100)"
    )


def test_other_places_are_said_to_be_others():
    former = replace(run(), directories=("elsewhere",), destination="ORDERS.>")
    said = " ".join(told_conditions(compare(former, run())))
    assert "read other journals, elsewhere: that may be all the difference" in said
    assert "was of ORDERS.>: that may be all the difference" in said
    assert "Both are of the same time" in said


def summary(**more):
    told = {"made_at": "2026-11-20T12:00:00Z", "directories": ["data"]}
    times = {"counted_from": "2026-11-20T10:00:00Z", "last_at": "2026-11-20T12:00:00Z"}
    return {**told, **times, "options": {"destination": ""}, "figures": FIGURES_TOLD, **more}


def test_a_former_run_is_given_by_its_folder_its_summary_or_a_url(tmp_path):
    file = tmp_path / "report.json"
    file.write_text(json.dumps(summary()), "utf-8")
    assert given_run(str(tmp_path)) == given_run(str(file)) == given_run(tmp_path.as_uri()) == run()


def test_one_that_is_found_is_of_the_same(tmp_path):
    assert found_run(str(tmp_path), ("data",), "") is None
    (tmp_path / "report.json").write_text(json.dumps(summary()), "utf-8")
    assert found_run(str(tmp_path), ("data",), "") == run()
    assert found_run(str(tmp_path), ("data",), "ORDERS") is None
    assert found_run(str(tmp_path), ("data", "more"), "") is None
    assert found_run("nothing://to/see", ("data",), "") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "report.json: No such file or directory"),
        ("{", "is no summary of a report"),
        ("[1]", "is no summary of a report"),
        (json.dumps(summary(figures=None)), "has no figures: its run left out reports"),
        (json.dumps(summary(made_at="yesterday")), "is no summary of a report"),
    ],
)
def test_one_that_is_given_and_is_none_is_an_error(tmp_path, content, said):
    if content is not None:
        (tmp_path / "report.json").write_text(content, "utf-8")
    with pytest.raises(AnalyticsError, match=said):
        given_run(str(tmp_path))
    assert found_run(str(tmp_path), ("data",), "") is None


def test_without_the_reports_behind_figures_there_is_nothing_to_compare(tmp_path):
    with pytest.raises(AnalyticsError, match="figures are told from inventory, totals"):
        analyze(["nowhere"], tmp_path / "out", reports=["sizes"], beside=str(tmp_path))


def test_a_summary_says_since_when_its_counts_are(tmp_path: Path):
    tables = reports_of(lived(tmp_path / "journal"), names=NEEDED)
    whole = run_behind(tables, "data")
    since = round(whole.begins.timestamp() * 1000) + 60_000
    assert run_behind(tables, "data", since=since).milliseconds == whole.milliseconds - 60_000
    assert run_behind(tables, "data", since=1).begins == whole.begins
    assert run_of({"figures": None}) is None


@pytest.mark.slow
@pytest.mark.patient
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_page_shows_each_figure_beside_the_former_one(tmp_path):
    journal, before = lived(tmp_path / "journal", 4), lived(tmp_path / "former")
    tables = reports_of(journal)
    former = run_behind(reports_of(before, names=NEEDED), "data")
    comparison = compare(former, run_behind(tables, "data"))
    page = page_of(tables, journal, comparison=comparison)
    script = """
        const seen = (each) => each.getClientRects().length > 0;
        return {
          tiles: Object.fromEntries([...document.querySelectorAll(".tile")].map((tile) => [
            tile.querySelector("h3").textContent,
            [...tile.querySelectorAll(".change")].filter(seen).map(
              (each) => [each.className, each.textContent])])),
          rows: [...document.querySelectorAll("#comparison tbody tr")].filter(seen).map(
            (row) => [...row.cells].map((cell) => cell.textContent)),
        };
    """
    found = answer(page, script, tmp_path)
    assert found["tiles"]["Sent"] == [["change", "\u25b2 110 more (+24.9\u00a0%)"]]
    assert found["tiles"]["Take-overs"] == [["change", "as before"]]
    assert found["tiles"]["Dead letters"][0][0] == "change worse"
    assert [row[0] for row in found["rows"]] == [each.heading for each in FIGURES]
    assert found["rows"][0][1:3] == ["441", "551"]
    assert page_of(tables, journal).count("Beside the former run") == 0
