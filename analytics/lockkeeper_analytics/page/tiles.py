"""The tiles at the head of the page, and the balance of where the messages went."""

from lockkeeper_analytics.comparison.changes import Comparison
from lockkeeper_analytics.page import text
from lockkeeper_analytics.page.comparison import change_note
from lockkeeper_analytics.page.story import Story

CHANGES = {
    "sent": "sent",
    "acknowledged": "acknowledged",
    "dead": "dead_lettered",
    "waiting": "all_waiting",
    "redelivered": "redelivered",
    "takeovers": "takeovers",
}
"""The figure of a comparison for each tile."""


def tiles(story: Story, comparison: Comparison | None = None) -> str:
    """Return the six figures that everybody asks for first, each beside the former run's."""
    sent = story.sent
    found = (
        ("sent", "Sent", sent, f"at the most {text.count(story.peak_per_second)}/s"),
        ("acknowledged", "Acknowledged", story.acknowledged, _share(story.acknowledged, sent)),
        ("dead", "Dead letters", story.dead_lettered, _share(story.dead_lettered, sent)),
        ("waiting", "Still waiting", _all_waiting(story), _waiting(story)),
        ("redelivered", "Redelivered", story.redelivered, _redelivered(story)),
        ("takeovers", "Take-overs", story.takeovers, _silence(story)),
    )
    return "".join(
        f'<div class="tile {style}"><h3>{name}</h3>{_large(text.count(figure))}<p>{note}</p>'
        f"{_change(style, comparison)}</div>"
        for style, name, figure, note in found
    )


def _change(tile: str, comparison: Comparison | None) -> str:
    return "" if comparison is None else change_note(comparison.change_of(CHANGES[tile]))


def _large(figure: str) -> str:
    """Return *figure* with how long it is: the style sheet makes it fit into its tile."""
    return f'<strong style="--characters: {len(figure)}">{figure}</strong>'


def _share(part: int, whole: int) -> str:
    return f"{text.share(part, whole)} of those sent"


def _all_waiting(story: Story) -> int:
    return story.waiting + story.waiting_letters


def _waiting(story: Story) -> str:
    """Return who waits: dead letters, which nobody takes, do not hide behind the others."""
    letters, oldest = story.waiting_letters, story.oldest_waiting
    parts = [f"{text.count(letters)} dead letter{'' if letters == 1 else 's'}"] if letters else []
    if story.last_at and oldest:
        age = text.milliseconds((story.last_at - oldest).total_seconds() * 1000)
        parts.append(f"the oldest other for {age}" if letters else f"the oldest for {age}")
    if story.in_doubt:
        parts.append(f"{text.count(story.in_doubt)} in doubt")
    return ", ".join(parts) or "all done"


def _redelivered(story: Story) -> str:
    if story.redelivered is None:
        return "no flight recorder counted them"
    return _share(story.redelivered, story.sent) if story.redelivered else "each delivered once"


def _silence(story: Story) -> str:
    silence = story.longest_silence_ms
    return "none recorded" if silence is None else f"{text.milliseconds(silence)} of silence"


def balance(story: Story) -> str:
    """Return a bar of where the messages sent to queues went; nothing where there were none."""
    whole = sum(number for _, number in story.balance)
    if not whole:
        return ""
    bars = "".join(
        f'<b class="{name.replace(" ", "-")}" style="flex-grow:{number}" '
        f'title="{text.count(number)} {name}"></b>'
        for name, number in story.balance
    )
    legend = "".join(
        f'<li class="{name.replace(" ", "-")}"><b>{text.count(number)}</b> {name} '
        f"<i>{text.share(number, whole)}</i></li>"
        for name, number in story.balance
    )
    return (
        '<section class="card slim"><h2>Where the messages went</h2>'
        f'<div class="balance">{bars}</div><ul class="legend">{legend}</ul></section>'
    )
