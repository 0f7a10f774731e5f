"""The page: figures that add up, every text escaped, nothing fetched from anywhere."""

import html
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from browser import CHROMIUM, browse

from lockkeeper_analytics.facts.grouping import DESTINATION
from lockkeeper_analytics.page import text
from lockkeeper_analytics.page.build import Made, build_page
from lockkeeper_analytics.page.plots import plot_data
from lockkeeper_analytics.page.story import tell
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.reports.report import Bars, Heat, Series, Tone
from lockkeeper_analytics.reports.sources import trusted

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
EVIL = "</script><b>&\"'"


def at(seconds):
    return NOW + timedelta(seconds=seconds)


def place(destination="ORDERS", kind="queue", directory="d"):
    return {"directory": directory, "destination_kind": kind, "destination": destination}


def total(destination, enqueued, acknowledged, dead=0, redelivered=None):
    sums = {"enqueued": enqueued, "acknowledged": acknowledged, "dead_lettered": dead}
    rest = {"expired": None, "redelivered": redelivered, "never_written": None}
    return {**place(destination), **sums, **rest, "is_dead_letter_queue": destination == "DLQ"}


def late(source, acknowledged, p99=9.0):
    bounds = dict.fromkeys(
        ("p50_at_least_ms", "p50_at_most_ms", "p99_at_least_ms", "p99_at_most_ms"), 1.0
    )
    row = {**place(), "source": source, "acknowledged": acknowledged, **bounds}
    return {**row, "p50_ms": 2.0, "p90_ms": 4.0, "p99_ms": p99, "max_ms": 20.0}


def troubles():
    """What went wrong meanwhile."""
    return {
        "dead_letters": [
            {
                "directory": "d",
                "origin_kind": "queue",
                "origin": "ORDERS",
                "dead_letter_queue": "DLQ",
                "cause": f"java.lang.Throwable: no {EVIL}",
                "messages": 1,
                "redeliveries": 6,
                "first_at": at(2),
                "last_at": at(2),
                "example": "ID:1",
            }
        ],
        "redeliveries": [
            {**place(), "redelivered": 3, "dispatched": 13, "marked": 1, "highest": 6}
        ],
        "takeovers": [
            {
                "directory": "d",
                "at": at(0),
                "event": "start",
                "broker": "b",
                "replica": "b-0",
                "epoch": 1,
                "cause": None,
                "after_crash": False,
                "last_known_at": None,
                "silent_ms": None,
            },
            {
                "directory": "d",
                "at": at(1),
                "event": "takeover",
                "broker": "b",
                "replica": "b-1",
                "epoch": 2,
                "cause": EVIL,
                "after_crash": True,
                "last_known_at": at(0),
                "silent_ms": 1000,
            },
        ],
    }


@pytest.fixture
def tables():
    """Ten orders came in two seconds; seven are done, one is dead, two wait."""
    rate = {"redelivered": 0.0, "seconds": 1, "is_dead_letter_queue": False, **place()}
    return {
        "inventory": [
            {
                "directory": "d",
                "kind": "add",
                "records": 10,
                "bytes": 5000,
                "files": 1,
                "first_at": at(0),
                "last_at": at(9),
            }
        ],
        "totals": [total("ORDERS", 10, 7, dead=1, redelivered=3), total("DLQ", 1, 0)],
        "rates": [
            {**rate, "time": at(0), "enqueued": 6.0, "dequeued": 2.0, "dead_lettered": 0.0},
            {**rate, "time": at(2), "enqueued": 4.0, "dequeued": 6.0, "dead_lettered": 1.0},
        ],
        "latency": [late("records", 7)],
        "latency_over_time": [
            {
                **place(),
                "time": at(2),
                "seconds": 1,
                "source": "records",
                "acknowledged": 7,
                "p50_ms": 2.0,
                "p99_ms": 9.0,
            }
        ],
        "backlog": [
            {
                **place(),
                "subscription": None,
                "waiting": 2,
                "bytes": 100,
                "dead_letters": 0,
                "in_doubt": 0,
                "oldest_at": at(1),
                "newest_at": at(2),
            },
            {
                **place("DLQ"),
                "subscription": None,
                "waiting": 1,
                "bytes": 50,
                "dead_letters": 1,
                "in_doubt": 0,
                "oldest_at": at(1),
                "newest_at": at(1),
            },
        ],
        **troubles(),
    }


def page_of(tables):
    return build_page(tables, Made(("data/kahadb",), NOW, "0.1.0"))


def data_of(page):
    return json.loads(page.split('id="data">')[1].split("</script>")[0])


def plot_of(plot, rows):
    return plot_data(plot, rows, {"d": ""}, set(), None)


def section_of(page, name):
    return page.split(f'id="{name}"')[1].split("</section>")[0]


def test_the_figures_add_up(tables):
    story = tell(tables)
    assert (story.sent, story.acknowledged, story.dead_lettered, story.waiting) == (10, 7, 1, 2)
    assert (story.redelivered, story.takeovers, story.longest_silence_ms) == (3, 1, 1000)
    assert story.balance == (("acknowledged", 7), ("dead letters", 1), ("waiting", 2))
    assert story.peak_per_second == 6.0
    assert (story.first_at, story.last_at) == (at(0), at(9))


def test_what_no_record_tells_of_is_said_to_be_gone_otherwise(tables):
    tables["totals"][0]["acknowledged"] = 4
    assert ("otherwise gone", 3) in tell(tables).balance


def test_records_are_trusted_when_they_hold_nearly_all():
    both = [late("records", 995), late("statistics", 1000)]
    assert trusted(both) == [both[0]]
    assert trusted([late("records", 900), both[1]]) == [both[1]]
    assert trusted([both[1]]) == [both[1]]


def test_nothing_is_fetched_from_anywhere(tables):
    page = page_of(tables)
    assert "default-src 'none'" in page
    links = re.findall(r"https?://[^\s\"'<]+", page)
    assert set(links) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(?:link|img|iframe|script)[^>]+(?:src|href)=(?!\"data:)", page)
    assert len(page.encode()) < 150_000


def test_every_text_is_escaped(tables):
    tables["totals"].append(total(EVIL, 1, 1))
    tables["rates"].append({**tables["rates"][0], **place(EVIL)})
    page = page_of(tables)
    assert EVIL not in page
    assert page.count("</script>") == 3
    assert EVIL in [series["label"] for series in data_of(page)["plots"]["rates"]["series"]]


def test_the_chart_has_every_cell_of_time(tables):
    tables["rates"].append({**tables["rates"][0], **place("OTHER")})
    data = data_of(page_of(tables))
    rates, late = data["plots"]["rates"], data["plots"]["latency_over_time"]
    assert (rates["start"], rates["step"]) == (round(NOW.timestamp() * 1000), 1000)
    assert [(each["label"], each["values"][0]) for each in rates["series"]] == [
        ("All destinations", [12, 0, 4]),
        ("ORDERS", [6, 0, 4]),
        ("OTHER", [6, 0, 0]),
    ]
    # All plots have the same cells of time.
    assert late["series"][0]["values"] == [[None, None, 9], [None, None, 2]]
    takeover = data["marks"][-1]
    assert takeover["at"] - takeover["since"] == 1000


def test_figures_and_deeds_are_on_the_page(tables):
    page = page_of(tables)
    for sentence in (
        '<h3>Sent</h3><strong style="--characters: 2">10</strong>',
        '<h3>Still waiting</h3><strong style="--characters: 1">3</strong>'
        "<p>1 dead letter, the oldest other for 8 s</p>",
        "<b>b-1</b> took over from a master that did not stop cleanly",
        "1 s after the last sign of life",
        "21 November 2026, 12:00:00 \N{EN DASH} 12:00:09 UTC",
    ):
        assert sentence in page, sentence


def test_reports_without_rows_are_one_line_each(tables):
    page = page_of({name: [] for name in tables})
    for name in tables:
        section = section_of(page, name)
        assert html.escape(REPORTS[name].nothing) in section
        assert "<table" not in section
    assert data_of(page)["plots"] == {}


def test_a_page_of_one_report_has_only_that(tables):
    page = page_of({"backlog": tables["backlog"]})
    assert "<tbody>" in section_of(page, "backlog")
    assert page.count("<section") == 2
    assert 'class="tile ' not in page
    assert page.count('href="#') == 1


def test_every_report_stands_with_its_question_its_figures_and_its_sql(tables):
    page = page_of(tables)
    for name in tables:
        report, section = REPORTS[name], section_of(page, name)
        assert html.escape(report.question) in section
        assert html.escape(report.sql) in section
        assert f"{name}_report" in section
        for column in report.columns:
            assert f">{html.escape(column.heading)}</th>" in section
        if report.plots:
            assert f'data-plot="{name}"' in section


def test_destinations_of_several_directories_are_told_apart(tables):
    tables["totals"].append({**total("ORDERS", 5, 5), "directory": "other"})
    assert "ORDERS (other)" in page_of(tables)


def test_long_tables_end_with_where_the_rest_is(tables):
    tables["totals"] = [total(f"Q{number}", 1000 - number, 0) for number in range(150)]
    page = page_of(tables)
    assert ">Q59<" in page
    assert ">Q60<" not in page
    assert "90 more rows are in totals.parquet and totals.json" in page


@pytest.mark.slow
@pytest.mark.patient
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", ["1400", "420"])
def test_a_browser_draws_every_plot_of_the_file_and_complains_of_nothing(tables, tmp_path, width):
    made, said = browse(page_of(tables), tmp_path, width)
    assert "CONSOLE" not in said
    for name, plot in data_of(page_of(tables))["plots"].items():
        drawn = section_of(made, name)
        assert drawn.count("<path") >= len(plot["lines"]), name
        assert all(line["name"] in drawn for line in plot["lines"])


@pytest.mark.slow
@pytest.mark.patient
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", ["1400", "1100", "420"])
def test_large_figures_are_not_cut_off(tables, tmp_path, width):
    tables["totals"] = [total("ORDERS", 1_234_567_890, 987_654_321)]
    measure = """<script>
        const figures = [...document.querySelectorAll(".tile strong")];
        const cut = figures.filter(each => each.scrollWidth > each.clientWidth);
        document.title = `${figures.length} figures, ${cut.length} cut`;
    </script></body>"""
    page = page_of(tables)
    made, _said = browse(page.replace("</body>", measure), tmp_path, width)
    assert "1,234,567,890" in made
    assert "<title>6 figures, 0 cut</title>" in made


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (text.milliseconds(0.0), "0 ms"),
        (text.milliseconds(2.25), "2.2 ms"),
        (text.milliseconds(113.4), "113 ms"),
        (text.milliseconds(2164), "2.16 s"),
        (text.milliseconds(303_000), "5 min 3 s"),
        (text.milliseconds(7_500_000), "2 h 5 min"),
        (text.milliseconds(180_000_000), "2 d 2 h"),
        (text.milliseconds(None), text.UNKNOWN),
        (text.share(1, 3), "33.3 %"),
        (text.share(1, 100_000), "< 0.1 %"),
        (text.share(5, 0), text.UNKNOWN),
        (text.size(512), "512 B"),
        (text.size(33_554_432), "32 MiB"),
        (text.count(336776), "336,776"),
    ],
)
def test_figures_read_well(shown, expected):
    assert shown == expected


def test_bars_and_fields_are_as_many_as_there_is_room_for():
    rows = [{**place(f"Q{number}"), "at_least": number % 3, "n": number} for number in range(30)]
    column = (Series("n", "messages", Tone.CAME),)
    bars = plot_of(Bars(DESTINATION, column, "messages"), rows)
    assert (bars["labels"][:2], bars["more"]) == (["Q0", "Q1"], 18)
    steps = plot_of(Bars(("at_least",), column, "messages", upright=True), rows)
    assert (len(steps["labels"]), steps["upright"]) == (30, True)
    heat = plot_of(Heat("at_least", DESTINATION, "n", "messages", "size", "destination"), rows)
    assert (heat["across"], heat["down"][0], len(heat["down"]), heat["more"]) == (
        ["0", "1", "2"],
        "Q6",
        24,
        6,
    )
    assert heat["fields"][4] == [1, 4, 10]
