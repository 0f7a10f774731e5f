"""The comparison with a former run: a note in each tile, and a card with all figures."""

from collections.abc import Iterator, Sequence
from html import escape

from lockkeeper_analytics.comparison.changes import Change, Comparison, Figure, Kind
from lockkeeper_analytics.comparison.runs import Run
from lockkeeper_analytics.page import text

HEADINGS = ("Figure", "Former run", "This run", "Difference")
_ARROWS = {"more": "\N{BLACK UP-POINTING TRIANGLE}", "less": "\N{BLACK DOWN-POINTING TRIANGLE}"}
_WORDS = {"more": "more", "less": "fewer"}
_STYLES = {True: "change worse", False: "change better", None: "change"}


def change_note(change: Change) -> str:
    """Return what a tile says of its figure beside the former run's; nothing where nobody knows."""
    if change.direction is None:
        return ""
    return f'<p class="{_STYLES[change.is_worse]}">{_with_arrow(change)}</p>'


def comparison_card(comparison: Comparison | None) -> str:
    """Return the card with all figures beside the former run's; nothing without one."""
    if comparison is None:
        return ""
    head = "".join(f'<th scope="col" class="number">{each}</th>' for each in HEADINGS[1:])
    rows = "".join(
        f'<tr><th scope="row">{escape(figure)}</th><td class="number">{former}</td>'
        f'<td class="number">{now}</td>'
        f'<td class="number {_STYLES[change.is_worse]}">{_with_arrow(change)}</td></tr>'
        for change, (figure, former, now, _) in zip(
            comparison.changes, told_rows(comparison), strict=True
        )
    )
    said = escape(" ".join(told_conditions(comparison)))
    return (
        '<section class="card" id="comparison"><div class="heading"><h2>Beside the former run</h2>'
        f"<p>{said}</p></div>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Beside the former run: table">'
        f'<table><thead><tr><th scope="col">{HEADINGS[0]}</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def told_rows(comparison: Comparison) -> Sequence[tuple[str, str, str, str]]:
    """Return a row for each figure, for HEADINGS."""
    return [tuple(_row(change)) for change in comparison.changes]  # type: ignore[misc]  # four


def told_conditions(comparison: Comparison) -> Iterator[str]:
    """Yield sentences: which runs these are, and what is not alike between them."""
    former, now = comparison.former, comparison.now
    yield f"The former run was made {text.moment(former.made_at)} UTC."
    if comparison.is_timeless:
        yield "Of one run nothing tells the time: counts over time are not compared."
    elif (former.begins, former.ends) == (now.begins, now.ends):
        yield f"Both are of the same time: {_span(now)}."
    else:
        yield f"It is of {_span(former)}; this one of {_span(now)}."
        yield f"Of this, {text.milliseconds(comparison.shared_milliseconds)} are the same time."
    if comparison.is_per_hour:
        yield "The times are not equally long: counts over time are compared for an hour."
    if former.directories != now.directories:
        places = ", ".join(former.directories)
        yield f"The former run read other journals, {places}: that may be all the difference."
    if former.destination != now.destination:
        named = f"was of {former.destination}" if former.destination else "was of all destinations"
        yield f"The former run {named}: that may be all the difference."


def _row(change: Change) -> Iterator[str]:
    yield change.figure.heading
    for place, value in enumerate((change.former, change.now)):
        written = written_figure(change.figure, value)
        yield f"{written} ({_rate(change.rates[place])} an hour)" if change.rates else written
    yield told_change(change)


def told_change(change: Change) -> str:
    """Return in words how a figure changed: `1,204 more (+12 %)`, `as before`, or a dash."""
    if change.direction is None or change.difference is None:
        return text.UNKNOWN
    if change.direction == "same":
        return "as before"
    size = abs(change.difference)
    is_count = change.figure.kind in (Kind.OVER_TIME, Kind.STATE)
    word = _WORDS[change.direction] if is_count else change.direction
    if change.rates is not None:
        told = f"{_rate(size)} {word} an hour"
    else:
        told = f"{written_figure(change.figure, size)} {word}"
    return told if change.share is None else f"{told} ({_signed(change.share)})"


def written_figure(figure: Figure, value: float | None) -> str:
    """Return a value of *figure* with its unit."""
    if figure.kind is Kind.DURATION:
        return text.milliseconds(value)
    if figure.kind is Kind.PER_SECOND:
        return text.UNKNOWN if value is None else f"{text.decimal(value)}/s"
    return text.count(value)


def _with_arrow(change: Change) -> str:
    arrow = _ARROWS.get(change.direction or "", "")
    mark = f'<span aria-hidden="true">{arrow}</span> ' if arrow else ""
    return mark + told_change(change).replace(" %", "&nbsp;%")


def _rate(value: float) -> str:
    return text.decimal(value)


def _signed(share: float) -> str:
    """Return a share with its sign; what is many times as much is told in times."""
    if share >= 9:
        return f"\N{MULTIPLICATION SIGN} {1 + share:,.0f}"
    sign = "+" if share > 0 else "\N{MINUS SIGN}"
    return sign + text.share(abs(share), 1)


def _span(run: Run) -> str:
    return f"{text.milliseconds(run.milliseconds)}, {text.span(run.begins, run.ends)} UTC"
