"""The verdicts on rules: which were kept, and the longest breaches of the others."""

from collections.abc import Sequence
from html import escape

from lockkeeper_analytics.agreements.breaches import Breach, Verdict, told_value
from lockkeeper_analytics.page import text

BREACHES_MAX = 5
"""So many of a rule are on the page."""

_HEADINGS = ("Rule", "Verdict", "Where", "From", "For", "Up to")


def agreements(verdicts: Sequence[Verdict]) -> str:
    """Return the section on rules; nothing where there are none."""
    if not verdicts:
        return ""
    head = "".join(f'<th scope="col">{each}</th>' for each in _HEADINGS)
    rows = "".join(_rows(each) for each in verdicts)
    broken = sum(not each.is_kept for each in verdicts)
    said = f"{broken} of {len(verdicts)} broken" if broken else "All are kept"
    return (
        '<section class="card" id="agreements"><div class="heading"><h2>Agreements</h2>'
        f"<p>{said}.</p></div>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Agreements: table">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _rows(verdict: Verdict) -> str:
    rule = f"<td><code>{escape(verdict.rule.text)}</code></td>"
    if verdict.is_kept:
        return f'<tr>{rule}<td><span class="badge tone-out">kept</span></td>{"<td></td>" * 4}</tr>'
    badge = '<td><span class="badge tone-bad">broken</span></td>'
    shown = verdict.breaches[:BREACHES_MAX]
    rows = "".join(f"<tr>{rule}{badge}{_cells(verdict, each)}</tr>" for each in shown)
    more = verdict.in_all - len(shown)
    if more:
        rows += f'<tr>{rule}{badge}<td colspan="4">and {more:,} more: report.json</td></tr>'
    return rows


def _cells(verdict: Verdict, breach: Breach) -> str:
    place = escape(breach.destination)
    if breach.subscription:
        place += f' <span class="of">to {escape(breach.subscription)}</span>'
    return (
        f'<td class="name"><span title="{escape(breach.destination)}">{place}</span></td>'
        f"<td>{text.short(breach.begins)}</td><td>{text.milliseconds(breach.milliseconds)}</td>"
        f"<td>{told_value(verdict.rule, breach.worst)}</td>"
    )
