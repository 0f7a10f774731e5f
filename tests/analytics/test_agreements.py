"""Rules: their grammar and its errors, when they are broken, and what the command says then."""

import re
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from journal_lived import OUTAGE, lived, moment
from journal_maker import ORDERS, START, JournalMaker
from journal_reports import NOW, asked, reports_of

from lockkeeper.message.destination import queue
from lockkeeper_analytics.agreements.breaches import told, verdicts_of
from lockkeeper_analytics.agreements.rules import parse_rule, parse_rules
from lockkeeper_analytics.agreements.rules import reports_of as needed
from lockkeeper_analytics.errors import RuleError
from lockkeeper_analytics.page.build import Made, build_page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p99 > 5s for 10m", ("p99", 5000, False, 600)),
        ("p50>=1m30s", ("p50", 90_000, True, 0)),
        ("lag > 1.5h for 500ms", ("lag", 5_400_000, False, 0.5)),
        ("  backlog   >  10000 ", ("backlog", 10_000, False, 0)),
        ("dead-letter-rate > 1% for 1d", ("dead-letter-rate", 0.01, False, 86_400)),
        ("dead-letter-rate > 30/m", ("dead-letter-rate", 0.5, False, 0)),
    ],
)
def test_rules_are_read(text, expected):
    rule = parse_rule(text)
    assert (rule.measure, rule.limit, rule.is_included, rule.seconds) == pytest.approx(expected)
    assert (rule.destinations, rule.text) == ((), " ".join(text.split()))


def test_a_rule_may_be_about_some_destinations():
    rule = parse_rule("queue://ORDERS.>, MAILS : p99 > 5s")
    assert [(each.kind is None, each.path) for each in rule.destinations] == [
        (False, ("ORDERS", ">")),
        (True, ("MAILS",)),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected [DESTINATIONS: ] MEASURE > VALUE"),
        ("p99", "expected [DESTINATIONS: ] MEASURE > VALUE"),
        ("p95 > 5s", "no measure 'p95' (known: p50, p99, lag, backlog, dead-letter-rate)"),
        ("p99 < 5s", "expected > or >= behind p99, not <"),
        ("p99 > 5", "p99 is compared with 5s or 1m30s, not '5'"),
        ("p99 > -5s", "p99 is compared with 5s or 1m30s, not '-5s'"),
        ("backlog > 5s", "backlog is compared with 10000, not '5s'"),
        ("dead-letter-rate > 5", "dead-letter-rate is compared with 1% or 10/m, not '5'"),
        ("p99 > 5s for ever", "expected a duration such as 10m behind `for`"),
        ("p99 > 5s for 10m please", "expected [DESTINATIONS: ] MEASURE > VALUE"),
        ("queue://: p99 > 5s", "option destination:"),
        (f"backlog > {'9' * 400}", "a number in it is too large"),
        (f"p99 > 5s for {'9' * 400}d", "a number in it is too large"),
    ],
)
def test_an_error_says_what_was_expected(text, said):
    with pytest.raises(RuleError, match=re.escape(said)):
        parse_rule(text)


def test_there_are_no_more_rules_than_anybody_reads():
    with pytest.raises(RuleError, match="33 rules: at most 32"):
        parse_rules(["p99 > 1s"] * 33)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    journal = lived(folder / "journal")
    names = needed(parse_rules(["p99 > 1s", "lag > 1s", "dead-letter-rate > 1%"]))
    for name, rows in reports_of(journal, names=names).items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    return folder


def judged(files, text):
    (verdict,) = verdicts_of([parse_rule(text)], files)
    return verdict


def spans(verdict):
    """Return the breaches as destination, first and last second of the journal, worst value."""
    start = moment(0) / 1000
    return [
        (each.destination, each.begins.timestamp() - start, each.ends.timestamp() - start)
        for each in verdict.breaches
    ]


def test_the_lag_of_orders_grows_as_nobody_takes_them(files):
    # Orders wait from the first second of the outage until the take-over's own second.
    verdict = judged(files, "ORDERS: lag > 5s for 20s")
    assert spans(verdict) == [("ORDERS", OUTAGE[0] + 5, 60)]
    assert verdict.breaches[0].worst == 30_000
    assert judged(files, "ORDERS: lag > 5s for 26s").is_kept
    assert judged(files, "ORDERS: lag > 30s").is_kept
    assert not judged(files, "ORDERS: lag >= 30s").is_kept


def test_dead_letter_queues_are_left_out_unless_they_are_named(files):
    assert {name for name, *_ in spans(judged(files, "lag > 1s"))} == {"ORDERS", "MAILS"}
    assert {name for name, *_ in spans(judged(files, "ActiveMQ.DLQ: lag > 1s"))} == {"ActiveMQ.DLQ"}
    assert {name for name, *_ in spans(judged(files, ">: backlog > 20"))} == {
        "ORDERS", "MAILS", "ActiveMQ.DLQ",
    }  # fmt: skip


def test_late_acknowledgements_are_a_breach_of_one_cell(files):
    verdict = judged(files, "ORDERS: p99 > 5s")
    assert spans(verdict) == [("ORDERS", 60, 61)]
    assert told(verdict) == (
        "ORDERS: p99 > 5s: ORDERS for 1 s from 2026-11-18T11:07:40Z on, up to 30 s"
    )
    assert judged(files, "ORDERS: p99 > 5s for 2s").is_kept


def test_dead_letters_are_counted_as_a_share_and_as_a_rate(files):
    # Every tenth order dies: of three that leave in a second, one or none.
    assert judged(files, "dead-letter-rate > 34%").is_kept
    assert not judged(files, "dead-letter-rate > 33%").is_kept
    assert judged(files, "dead-letter-rate > 6/s").is_kept
    assert not judged(files, "dead-letter-rate > 300/m").is_kept


def cell(second, value, source="records"):
    return {
        "directory": "d",
        "destination_kind": "queue",
        "destination": "Q",
        "time": NOW + timedelta(seconds=second),
        "seconds": 10,
        "source": source,
        "acknowledged": 100,
        "p50_ms": value,
        "p99_ms": value,
    }


def breaches(tmp_path, *cells, rule="p99 > 5s for 30s"):
    pq.write_table(pa.Table.from_pylist(list(cells)), tmp_path / "latency_over_time.parquet")
    (verdict,) = verdicts_of([parse_rule(rule)], tmp_path)
    return [
        ((each.begins - NOW).total_seconds(), (each.ends - NOW).total_seconds(), each.worst)
        for each in verdict.breaches
    ]


def test_a_cell_below_the_limit_ends_a_breach_and_a_missing_one_does_not(tmp_path):
    late = [cell(second, 6000.0 + second) for second in (0, 10, 20, 60)]
    assert breaches(tmp_path, *late) == [(0, 70, 6060.0)]
    assert breaches(tmp_path, *late, cell(30, 4000.0)) == [(0, 30, 6020.0)]
    assert breaches(tmp_path, *late, cell(15, 5000.0)) == [(20, 70, 6060.0)]
    assert breaches(tmp_path, *late[:2]) == []


def test_a_time_without_dead_letters_ends_what_is_counted_in_a_time(tmp_path):
    """Two bad seconds with a quiet hour between are no bad hour; of a share nothing is told."""
    times = (0, 10, 3600, 3610, 3620)
    letters = [{**cell(second, 0.0), "dead_lettered": 40.0, "dequeued": 40.0} for second in times]
    pq.write_table(pa.Table.from_pylist(letters), tmp_path / "rates.parquet")

    def broken(rule):
        verdict = judged(tmp_path, rule)
        return sorted((each.begins - NOW).total_seconds() for each in verdict.breaches)

    assert broken("dead-letter-rate > 60/m") == [0, 3600]
    assert broken("dead-letter-rate > 60/m for 30s") == [3600]
    assert broken("dead-letter-rate > 60/m for 1m") == []
    assert broken("dead-letter-rate > 50% for 1h") == [0]


def test_the_histograms_count_where_records_hold_too_little(tmp_path):
    told_by_both = [cell(0, 9000.0, "statistics"), {**cell(0, 1.0), "acknowledged": 3}]
    assert breaches(tmp_path, *told_by_both, rule="p99 > 5s") == [(0, 10, 9000.0)]
    assert breaches(tmp_path, cell(0, 9000.0, "statistics"), cell(0, 1.0), rule="p99 > 5s") == []


DAY = 86_400_000
GRAVE = queue("ActiveMQ.DLQ.Queue.ORDERS")
CAUSE = {"dlqDeliveryFailureCause": "no stock"}


def broken(folder, directory, rule, **options):
    """Return which destinations break *rule* in a run with *options*."""
    for name in needed([parse_rule(rule)]):
        rows = asked(f"FROM {name}_report", directory, **options)
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    return {each.destination for each in judged(folder, rule).breaches}


@pytest.mark.parametrize(
    "options", [{}, {"since": str(START + 2 * DAY)}, {"destination": "ActiveMQ.DLQ.>"}]
)
@pytest.mark.parametrize("rule", ["lag > 1h", "backlog > 0"])
def test_a_narrowed_run_knows_dead_letter_queues_by_what_died_before(tmp_path, rule, options):
    maker = JournalMaker(tmp_path / "journal").add(1, 0).clock(0).flush()
    maker.add(1, 10, GRAVE, properties=CAUSE, original_destination=ORDERS)
    maker.remove(1).clock(10).flush()
    maker.add(2, 3 * DAY).clock(3 * DAY).flush().remove(2).clock(3 * DAY + 100).flush()
    assert broken(tmp_path, maker.directory, rule, **options) == set()
    assert broken(tmp_path, maker.directory, f">: {rule}", **options) == {GRAVE.name}


@pytest.mark.parametrize("rule", ["lag > 10s", "backlog > 5"])
def test_a_letter_that_came_back_exempts_its_queue_from_no_rule(tmp_path, rule):
    maker = JournalMaker(tmp_path / "journal")
    for number in range(1, 11):
        maker.add(number, number)
    maker.clock(10).flush()
    maker.add(1, 20, GRAVE, properties=CAUSE, original_destination=ORDERS).remove(1)
    maker.add(1, 30, properties=CAUSE, original_destination=GRAVE).remove(1, GRAVE)
    maker.clock(30).flush().add(99, 60_000, queue("OTHER")).clock(60_000).flush()
    assert broken(tmp_path, maker.directory, rule) == {"ORDERS"}


def test_the_page_has_the_rules_and_who_broke_them(files):
    texts = ["ORDERS: lag > 5s for 20s", "backlog > 1000", "lag > 1s"]
    verdicts = verdicts_of(parse_rules(texts), files)
    page = build_page({}, Made(("d",), NOW, "0.1.0", verdicts=verdicts))
    section = page.split('id="agreements"')[1].split("</section>")[0]
    assert "2 of 3 broken" in section
    assert "ORDERS: lag &gt; 5s for 20s" in section and "25 s" in section
    assert section.count(">kept<") == 1


@pytest.mark.spark
@pytest.mark.slow
def test_the_command_ends_with_a_code_of_its_own(tmp_path, command):
    journal = lived(tmp_path / "journal")
    rules = ("--rule", "ORDERS: lag > 5s for 20s", "--rule", "backlog > 1000")
    # Spark and DuckDB take such signs for patterns of paths.
    out = ("--out", tmp_path / "report[1] {a,b} *?", "--report", "backlog")
    code, _, said = command(journal, *out, *rules)
    assert code == 3, said
    assert "broken: ORDERS: lag > 5s for 20s: ORDERS for 25 s from" in said
    assert "backlog > 1000" not in said
    code, _, said = command(journal, *out, "--rule", "p99 < 5s")
    assert code == 1
    assert said == "lockkeeper: rule 'p99 < 5s': expected > or >= behind p99, not <\n"
