"""Results of a bench: a line a second, a table at the end, or JSON."""

from typing import Any

from lockkeeper.cli.bench.figures import Figures
from lockkeeper.cli.bench.histogram import Histogram
from lockkeeper.cli.bench.load import Load
from lockkeeper.cli.bench.running import Outcome
from lockkeeper.cli.output import Column, Listing, counted, say, size_text

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
BAR_WIDTH = 40


def tell_second(at: float, seconds: float, figures: Figures) -> None:
    """Print what was done in the last *seconds*, on the standard error stream."""
    parts = [f"{at:4.0f} s"]
    for word, count, times in _directions(figures):
        latency = f", p99 {_milliseconds(times.percentile(0.99))} ms" if times.total else ""
        parts.append(f"{word} {count / seconds:,.0f}/s{latency}")
    say("   ".join(parts))


def listing_of(load: Load, outcome: Outcome) -> Listing:
    """Return the table of *outcome*; its data is what `--json` prints."""
    figures = outcome.figures
    columns = [Column(""), Column("messages", True), Column("per second", True)]
    columns += [Column(f"{each} ms", True) for each in (*SHARES, "max")]
    return Listing(
        columns,
        [
            [word, f"{count:,}", f"{rate:,.0f}", *map(_milliseconds, _latencies(times).values())]
            for (word, count, times), rate in zip(
                _directions(figures), _rates(outcome), strict=True
            )
        ],
        data_of(load, outcome),
        above=[_heading(load), ""],
        below=["", *_bars(load, figures), *remarks(load, figures)],
    )


def data_of(load: Load, outcome: Outcome) -> dict[str, Any]:
    """Return *outcome* for scripts; durations are in milliseconds."""
    figures = outcome.figures
    sent_rate, received_rate = _rates(outcome)
    return {
        "destination": str(load.destination),
        "producers": load.producers,
        "consumers": load.consumers,
        "bytes": load.size,
        "persistent": load.is_persistent,
        "transaction": load.transaction,
        "sent": figures.sent,
        "sentPerSecond": round(sent_rate, 1),
        "sendMs": _in_milliseconds(figures.send_times),
        "received": figures.received,
        "receivedPerSecond": round(received_rate, 1),
        "deliveryMs": _in_milliseconds(figures.delivery_times),
        "missing": missing(load, figures),
        "redelivered": figures.redelivered,
        "ofEarlierRuns": figures.left_behind,
        "rolledBack": figures.rolled_back,
        "inDoubt": figures.in_doubt,
        "histogram": [
            {"upToMs": limit / 1000, "messages": count}
            for limit, count in figures.delivery_times.by_steps()
        ],
        "seconds": [
            {
                "at": round(at, 1),
                "sent": each.sent,
                "received": each.received,
                "deliveryMs": _in_milliseconds(each.delivery_times),
            }
            for at, each in outcome.by_second
        ],
    }


def missing(load: Load, figures: Figures) -> int:
    """Return how many messages were sent and did not come, 0 when nobody sent or received."""
    if not load.producers:
        return 0
    return max(0, load.expected(figures.sent) - figures.received)


def remarks(load: Load, figures: Figures) -> list[str]:
    """Return a line for everything that is out of the ordinary."""
    lines = []
    if count := missing(load, figures):
        lines.append(f"{counted(count, 'message')} did not come: they wait in {load.destination}")
    if load.producers and load.destination.is_queue and not load.consumers and figures.sent:
        lines.append(f"{counted(figures.sent, 'message')} wait in {load.destination} now")
    if figures.redelivered:
        lines.append(f"{counted(figures.redelivered, 'message')} may have come twice")
    if figures.left_behind:
        lines.append(f"{counted(figures.left_behind, 'message')} of earlier runs were removed")
    if figures.rolled_back:
        lines.append(f"{counted(figures.rolled_back, 'message')} were rolled back")
    if figures.in_doubt:
        lines.append(f"{counted(figures.in_doubt, 'message')} are in doubt: a commit was cut off")
    return lines


def _directions(figures: Figures) -> list[tuple[str, int, Histogram]]:
    return [
        ("sent", figures.sent, figures.send_times),
        ("received", figures.received, figures.delivery_times),
    ]


def _rates(outcome: Outcome) -> tuple[float, float]:
    """Return messages a second, sent and received, until the last of each."""
    figures = outcome.figures
    return (
        figures.sent / outcome.seconds_until(figures.last_sent),
        figures.received / outcome.seconds_until(figures.last_received),
    )


def _heading(load: Load) -> str:
    kind = "persistent" if load.is_persistent else "non-persistent"
    batches = f", transactions of {load.transaction:,}" if load.transaction else ""
    return (
        f"{load.destination}: {counted(load.producers, 'producer')}, "
        f"{counted(load.consumers, 'consumer')}, {size_text(load.size)}, {kind}{batches}"
    )


def _bars(load: Load, figures: Figures) -> list[str]:
    """Return the histogram of deliveries, a line a step."""
    steps = figures.delivery_times.by_steps()
    most = max((count for _, count in steps), default=0)
    lines = [
        f"  {f'{limit / 1000:,g}':>7} ms  {'█' * round(BAR_WIDTH * count / most)} {count:,}"
        for limit, count in steps
    ]
    return ["from the send to the consumer, up to", *lines, ""] if lines else []


def _latencies(times: Histogram) -> dict[str, int]:
    """Return percentiles and the longest, in microseconds."""
    return {
        **{name: times.percentile(share) for name, share in SHARES.items()},
        "max": times.longest,
    }


def _in_milliseconds(times: Histogram) -> dict[str, float]:
    return {name: each / 1000 for name, each in _latencies(times).items()}


def _milliseconds(microseconds: int) -> str:
    """Return a duration in milliseconds with three digits, such as `0.42`, `12.3` or `1,240`."""
    amount = microseconds / 1000
    digits = 2 if amount < 10 else 1 if amount < 100 else 0
    return f"{amount:,.{digits}f}"
