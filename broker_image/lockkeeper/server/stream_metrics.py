"""Figures of streams and consumer groups for Prometheus; a broker without streams has none."""

from collections.abc import Iterable, Iterator
from typing import Any

from lockkeeper.server.metrics import DESTINATIONS_MAX, Family

_OF_STREAMS = (
    ("messages", "Messages that the stream keeps.", "messages"),
    ("bytes", "Bytes of the journal that they take.", "bytes"),
)
_OF_GROUPS = (
    ("lag_messages", "Messages of the stream that the group has not consumed.", "lagMessages"),
    ("lag_seconds", "Age of the oldest of them in seconds.", "lagTime"),
)


def stream_families(
    streams: Iterable[dict[str, Any]], groups: Iterable[dict[str, Any]]
) -> Iterator[Family]:
    """Yield the figures of *streams* and *groups*, of the largest ones if there are many."""
    kept = sorted(streams, key=lambda view: -int(view["messages"]))[:DESTINATIONS_MAX]
    for name, said, key in _OF_STREAMS if kept else ():
        values = tuple(((("stream", str(view["name"])),), float(view[key])) for view in kept)
        yield Family(f"lockkeeper_stream_{name}", "gauge", said, values)
    behind = sorted(groups, key=lambda view: -int(view["lagMessages"]))[:DESTINATIONS_MAX]
    if not behind:
        return
    members = tuple(
        ((("group", str(view["name"])),), float(len(view["members"]))) for view in behind
    )
    yield Family("lockkeeper_group_members", "gauge", "Members of the group.", members)
    for name, said, key in _OF_GROUPS:
        found = tuple(
            ((("group", group), ("stream", stream)), value)
            for view in behind
            for group, stream, value in _by_stream(view, key)
        )
        yield Family(f"lockkeeper_group_{name}", "gauge", said, found)


def _by_stream(view: dict[str, Any], key: str) -> Iterator[tuple[str, str, float]]:
    """Yield a figure of a group for each stream: messages in all, the longest time in seconds."""
    found: dict[str, list[int]] = {}
    for partition in view["partitions"]:
        found.setdefault(str(partition["stream"]), []).append(int(partition[key]))
    for stream, values in found.items():
        value = max(values) / 1000 if key == "lagTime" else float(sum(values))
        yield str(view["name"]), stream, value
