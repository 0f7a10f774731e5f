"""The page with plots of a report: every round, every median, nothing that was not measured."""

import json
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import page
import plots
import pytest
from rendering import InvalidReportError


def test_each_round_and_each_median_is_a_mark(report: dict[str, Any]) -> None:
    text = page.build(report)
    body = ElementTree.fromstring(text[text.index("<body>") : text.index("</html>")])
    figures = {figure.findtext("figcaption/b"): figure for figure in body.iter("figure")}
    # Scenario a once for its throughput, once for its latency.
    assert len([*body.iter("figure")]) == 4
    faint = {
        scenario: [each for each in figure.iter("circle") if "faint" in each.get("class", "")]
        for scenario, figure in figures.items()
    }
    assert {scenario: len(found) for scenario, found in faint.items()} == {"a": 0, "d": 2, "h": 1}
    titles = [each.text for each in figures["d"].iter("title")]
    assert titles == [
        "lockkeeper: 5,000 messages/s, 10.0 CPU µs a message",
        "rabbitmq: 10,000 messages/s, 20.0 CPU µs a message",
    ]
    lines = [[*figure.iter("polyline")] for figure in body.iter("figure")]
    assert [len(found) for found in lines] == [0, 0, 0, 2]


def test_a_faster_broker_is_drawn_higher_and_a_cheaper_one_further_left() -> None:
    across, up = plots.axis("CPU", [10, 20]), plots.axis("rate", [100, 1000])
    series = [plots.Series("quick", 0, [(10, 1000)]), plots.Series("slow", 1, [(20, 100)])]
    drawn = ElementTree.fromstring(plots.scatter(across, up, series, []))
    (quick, slow) = drawn.iter("circle")
    assert float(quick.get("cy", "")) < float(slow.get("cy", ""))
    assert float(quick.get("cx", "")) < float(slow.get("cx", ""))


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ([90, 1100], ["100", "200", "500", "1k"]),
        ([0.4, 3], ["0.5", "1", "2"]),
        ([3, 4e6], ["10", "100", "1k", "10k", "100k", "1M"]),
        ([1000, 1000], ["1k"]),
    ],
)
def test_axes_are_marked_at_round_numbers(values: list[float], marks: list[str]) -> None:
    assert [text for _, text in plots.axis("", values).ticks] == marks


def test_each_nine_takes_the_same_room() -> None:
    axis = plots.percentile_axis(99.99)
    shares = [axis.share(value) for value, _ in axis.ticks][1:]
    gaps = {round(after - before, 6) for before, after in pairwise(shares)}
    assert len(gaps) == 1


def test_what_brokers_are_called_cannot_change_the_page(report: dict[str, Any]) -> None:
    report["versions"]["lockkeeper"] = "<script>alert(1)</script>"
    assert "<script>" not in page.build(report)


def test_other_files_are_refused(tmp_path: Path, report: dict[str, Any]) -> None:
    report["results"][0]["rate"] = None
    with pytest.raises(InvalidReportError):
        page.build(report)
    made = tmp_path / "report.json"
    made.write_text(json.dumps([]))
    with pytest.raises(SystemExit, match="no report of the bench"):
        page.main([str(made), str(tmp_path / "page.html")])
    assert not (tmp_path / "page.html").exists()
