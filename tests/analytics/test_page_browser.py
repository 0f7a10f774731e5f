"""The page in a browser: tables, ranges of time, keys, and the commands that rows lead to."""

import re
import shlex
from pathlib import Path

import pytest
from browser import CHROMIUM, answer
from journal_lived import CAUSES, LETTERS, MAILS, destinations, lived
from journal_reports import asked, page_of, reports_of

from lockkeeper.broker.selectors import compile_selector
from lockkeeper_analytics.reports import REPORTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.patient,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]

FIRST_ROWS = """
window.first = {};
for (const each of document.querySelectorAll("[data-table]")) {
  window.first[each.dataset.table] = [...each.querySelectorAll("tbody tr")].map(
    (row) => [...row.cells].map((cell) => cell.className + cell.innerHTML));
}
"""


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("lived") / "journal")


@pytest.fixture(scope="module")
def tables(journal):
    return reports_of(journal)


@pytest.fixture(scope="module")
def page(tables, journal):
    return page_of(tables, journal)


@pytest.fixture(scope="module")
def golden_page():
    directory = Path(__file__).parents[1] / "golden" / "kahadb" / "amq-5.17.2-crash"
    return page_of(reports_of(directory), directory)


@pytest.mark.parametrize("name", ["page", "golden_page"])
def test_a_script_writes_cells_as_they_are_without_one(name, request, tmp_path):
    script = """
        const wrong = [];
        let count = 0;
        for (const [name, rows] of Object.entries(window.first)) {
          const made = [...document.querySelectorAll(`[data-table="${name}"] tbody tr`)];
          if (made.length !== rows.length) wrong.push([name, made.length, rows.length]);
          rows.forEach((row, place) => row.forEach((cell, column) => {
            const other = made[place].cells[column + 1];
            count += 1;
            if (other.className + other.innerHTML !== cell) {
              wrong.push([name, cell, other.className + other.innerHTML]);
            }
          }));
        }
        return { wrong, count };
    """
    found = answer(request.getfixturevalue(name), script, tmp_path, before=FIRST_ROWS)
    assert found["wrong"] == []
    assert found["count"] > 300


def test_tables_are_sorted_and_searched_and_saved(page, tables, tmp_path):
    script = """
        const table = tables.get("backlog_over_time");
        const waiting = table.host.querySelectorAll("thead button")[2];
        waiting.click();
        const first = table.shown.slice(0, 3).map((row) => row("waiting"));
        const sorted = waiting.parentElement.getAttribute("aria-sort");
        waiting.click();
        const last = table.shown.slice(0, 3).map((row) => row("waiting"));
        const input = table.host.querySelector("input");
        input.value = "mail";
        input.dispatchEvent(new Event("input"));
        const status = table.host.querySelector("[role=status]").textContent;
        return { first, sorted, last, status, csv: table.csv() };
    """
    found = answer(page, script, tmp_path)
    waiting = sorted(row["waiting"] for row in tables["backlog_over_time"])
    assert (found["last"], found["first"]) == (waiting[:3], waiting[:-4:-1])
    assert found["sorted"] == "descending"
    mails = [row for row in tables["backlog_over_time"] if row["destination"] == str(MAILS.name)]
    whole = len(tables["backlog_over_time"])
    assert found["status"] == f"{len(mails)} of {whole} rows"
    head, *rows = found["csv"].split("\r\n")[:-1]
    assert head.split(",")[:4] == ["directory", "destination_kind", "destination", "subscription"]
    assert len(rows) == len(mails)
    assert "2026-11-18T11:06:40.000Z" in found["csv"]


def test_texts_are_no_formulas_in_a_spreadsheet(page, tmp_path):
    script = """return ["=1+1", "@x", "-2", 'a"b,c', "plain"].map((each) => csvText("x", each));"""
    texts = ["'=1+1", "'@x", "'-2", '"a""b,c"', "plain"]
    assert answer(page, script, tmp_path) == texts


POINTER = """
    const drag = (host, from, to) => {
      const box = host.getBoundingClientRect();
      const told = (x) => ({ clientX: box.left + x, clientY: box.top + 50, bubbles: true });
      host.dispatchEvent(new MouseEvent("pointerdown", told(from)));
      host.dispatchEvent(new MouseEvent("pointermove", { ...told(to), buttons: 1 }));
      host.dispatchEvent(new MouseEvent("pointerup", told(to)));
    };
    const told = () => ({
      from: timeRange.from, to: timeRange.to,
      views: charts.map((chart) => [chart.at(chart.view.first), chart.at(chart.view.end)]),
      rows: tables.get("rates").shown.length,
      cells: charts.map((chart) => chart.figures().rows.length),
    });
"""


def test_a_time_drawn_on_one_plot_is_shown_by_all_and_by_tables(page, tables, tmp_path):
    script = f"""{POINTER}
        const chart = charts[0];
        drag(chart.host, chart.x(chart.at(10)) + 1, chart.x(chart.at(19)) + 1);
        const narrow = told();
        drag(chart.host, chart.x(chart.at(12)) + 1, chart.x(chart.at(14)) + 1);
        const narrower = told();
        chart.host.dispatchEvent(new MouseEvent("dblclick"));
        return {{ narrow, narrower, all: told(), start: timeRange.start }};
    """
    found = answer(page, script, tmp_path)
    narrow, start = found["narrow"], found["start"]
    assert (narrow["from"] - start, narrow["to"] - start) == (10_000, 20_000)
    assert narrow["views"] == [[start + 10_000, start + 20_000]] * 4
    times = [round(row["time"].timestamp() * 1000) - start for row in tables["rates"]]
    assert narrow["rows"] == sum(10_000 <= time < 20_000 for time in times)
    narrower = found["narrower"]
    assert (narrower["from"] - start, narrower["to"] - start) == (12_000, 15_000)
    assert (found["all"]["from"], found["all"]["rows"]) == (None, len(times))


def test_keys_read_values_choose_a_time_and_show_the_whole(page, tmp_path):
    script = f"""{POINTER}
        const host = charts[0].host;
        const press = (key, shiftKey = false) => {{
          host.dispatchEvent(new KeyboardEvent("keydown", {{ key, shiftKey, bubbles: true }}));
        }};
        press("Home");
        press("ArrowRight");
        const said = document.getElementById("said").textContent;
        press("ArrowRight", true);
        press("ArrowRight", true);
        press("Enter");
        const narrow = told();
        press("Escape");
        return {{ said, narrow, all: told(), start: timeRange.start, role: host.role,
          tab: host.tabIndex, label: host.getAttribute("aria-label") }};
    """
    found = answer(page, script, tmp_path)
    start = found["start"]
    assert found["said"].startswith("11:06:41, came in 4 /s")
    assert (found["narrow"]["from"], found["narrow"]["to"]) == (start + 1000, start + 4000)
    assert (found["all"]["from"], found["tab"]) == (None, 0)
    assert "messages a second" in found["label"] and "came in: at the most" in found["label"]


def test_what_is_drawn_is_a_table_too(page, tables, tmp_path):
    script = """
        const all = document.querySelectorAll("[data-drawn]");
        for (const each of all) each.open = true;
        await new Promise((done) => setTimeout(done, 100));
        return [...all].map((each) => [each.dataset.drawn, each.querySelectorAll("th").length,
          each.querySelectorAll("tbody tr").length]);
    """
    found = {name: (columns, rows) for name, columns, rows in answer(page, script, tmp_path)}
    drawn = {f"{name}" for name in tables if REPORTS[name].plots and tables[name]}
    assert drawn | {"backlog_over_time-1"} == found.keys()
    assert found["backlog_over_time-1"] == (2, 121)
    assert all(columns >= 2 and rows for columns, rows in found.values())


def commands_of(page, report, directory):
    """Return the commands that the first row of a report leads to, and those of all chosen."""
    script = f"""
        const section = document.getElementById("{report}");
        section.querySelector("td .open").click();
        for (const each of section.querySelectorAll("input[type=checkbox]")) each.click();
        return [...section.querySelectorAll(".command code")].map((each) => each.textContent);
    """
    return [shlex.split(each) for each in answer(page, script, directory)]


SHOWN = {
    "totals": lambda row: row["enqueued"],
    "dead_letters": lambda row: row["messages"],
    "poison": lambda row: row["dead_lettered"],
    "backlog": lambda row: row["waiting"],
    "sizes": lambda row: row["messages"],
    "producers": lambda row: row["messages"],
    "redeliveries": lambda _row: 0,
    "rates": lambda row: row["enqueued"],
}


@pytest.mark.parametrize("report", SHOWN)
def test_a_row_leads_to_its_messages(page, tables, journal, report, tmp_path):
    commands = commands_of(page, report, tmp_path)
    (_program, _sql, query, directory) = next(each for each in commands if each[1] == "sql")
    assert directory == str(journal)
    row = REPORTS[report].shown(tables[report])[0]
    whole = re.sub(r"LIMIT \d+$", "", query)
    found = asked(whole, journal)
    # The order that came back under its old id is one more message of its queue.
    assert len(found) == SHOWN[report](row)


def test_chosen_dead_letters_lead_to_the_command_that_sends_them_back(page, tables, tmp_path):
    *_, retry = commands_of(page, "dead_letters", tmp_path)
    assert retry[:5] == ["lockkeeper", "dlq", "retry", "--queue", str(LETTERS.name)]
    assert retry[5] == "--selector" and len(retry) == 7
    selector = compile_selector(retry[6])
    matches = [
        selector.matches(lambda _name, cause=cause: cause)
        for cause in (*CAUSES, "no such customer: ID:other-2:9 <b>'%", "else", "out of stock")
    ]
    assert matches == [True, True, True, False, False]


def test_few_messages_are_sent_back_by_their_ids(page, tables, tmp_path):
    script = """
        document.querySelector("#poison input[type=checkbox]").click();
        return document.querySelector("#poison .command code").textContent;
    """
    command = shlex.split(answer(page, script, tmp_path))
    ids = REPORTS["poison"].shown(tables["poison"])[0]["message_ids"]
    assert command == ["lockkeeper", "dlq", "retry", "--queue", str(LETTERS.name), *ids]


def test_the_life_of_an_example_is_asked_for(page, journal, tmp_path):
    commands = commands_of(page, "dead_letters", tmp_path)
    trace = next(each for each in commands if each[1] == "trace")
    assert trace[2].startswith("ID:maker-1:1:1:1:") and trace[3:] == [str(journal)]


def test_whole_tables_are_printed(page, tables, tmp_path):
    script = """
        const shown = () => document.querySelectorAll("#backlog_over_time .table tbody tr").length;
        const before = shown();
        window.dispatchEvent(new Event("beforeprint"));
        const printed = shown();
        const opened = [...document.querySelectorAll("details:not(.sql, .drawn)")];
        const isOpen = opened.every((each) => each.open);
        window.dispatchEvent(new Event("afterprint"));
        return [before, printed, isOpen, shown()];
    """
    rows = len(tables["backlog_over_time"])
    assert rows > 60
    assert answer(page, script, tmp_path) == [60, rows, True, 60]


def test_the_choice_of_light_or_dark_is_kept(page, tmp_path):
    answer(page, """document.getElementById("theme").click(); return 1;""", tmp_path)
    theme = """return document.documentElement.dataset.theme;"""
    assert answer(page, theme, tmp_path) == "dark"


def test_without_a_script_there_are_tables_and_words_where_plots_would_be(page):
    shown = page.split('<script type="application/json"')[0]
    section = shown.split('id="dead_letters"')[1].split("</section>")[0]
    assert "out of stock" in section and "<tbody><tr>" in section
    assert "Plots are drawn by a script" in shown.split('id="rates"')[1].split("</section>")[0]


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>.{}", "N" * 5000 + "{}", "Ü😀\u202e.{}"]
)
def test_names_are_texts_however_they_look(name, tmp_path):
    journal = destinations(tmp_path / "journal", 3, name)
    page = page_of(reports_of(journal), journal)
    script = """
        document.querySelector("#totals td .open").click();
        return {
          images: document.images.length,
          wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
          name: document.querySelector("#totals dd").textContent,
          series: data.plots.rates.series.map((each) => each.label).sort(),
        };
    """
    found = answer(page, script, tmp_path)
    assert (found["images"], found["wide"]) == (0, 0)
    assert found["name"] == name.format(0)
    assert {name.format(number) for number in range(3)} < set(found["series"])


def test_a_page_of_ten_thousand_destinations_stays_handy(tmp_path):
    journal = destinations(tmp_path / "journal", 10_000)
    names = ("inventory", "totals", "rates", "backlog", "dead_letters", "takeovers", "sizes")
    page = page_of(reports_of(journal, names=names), journal)
    assert len(page) < 4_000_000
    script = """
        const table = tables.get("totals");
        const input = table.host.querySelector("input");
        input.value = "q.9999";
        input.dispatchEvent(new Event("input"));
        const ready = performance.getEntriesByType("navigation")[0];
        return [table.rows.length, table.shown.length, document.body.scrollHeight,
          ready.domContentLoadedEventEnd];
    """
    rows, shown, height, ready = answer(page, script, tmp_path)
    assert (rows, shown) == (10_000, 1)
    assert height < 8000
    assert ready < 30_000
