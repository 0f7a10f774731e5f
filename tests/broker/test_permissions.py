"""Permissions by wildcard: entries add up, and wildcards open nothing else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.broker.access.permissions import PermissionEntry, PermissionMap, Right
from lockkeeper.message.destination import Destination, queue, topic

LEVELS = ("A", "B", "C")
NAMES = [
    ".".join(levels)
    for levels in (
        *((a,) for a in LEVELS),
        *((a, b) for a in LEVELS for b in LEVELS),
        *((a, b, c) for a in LEVELS for b in LEVELS for c in LEVELS),
    )
]
GROUPS = ("east", "west", "*")
ME = frozenset(("east",))

patterns = st.builds(
    lambda levels, tail: ".".join([*levels, *tail]) or ">",
    st.lists(st.sampled_from((*LEVELS, "*")), max_size=3),
    st.sampled_from(((), (">",))),
)
groups = st.frozensets(st.sampled_from(GROUPS), max_size=2)
entries = st.lists(
    st.builds(
        PermissionEntry, patterns, st.sampled_from((None, True, False)), groups, groups, groups
    ),
    max_size=5,
)


def expression(pattern: str) -> "re.Pattern[str]":
    """Return what matches the names that a wildcard stands for, as ActiveMQ's pages tell it."""
    text = re.escape(pattern).replace(r"\*", r"[^.]+").replace(r"\.>", r"(\..+)?")
    return re.compile(text.replace(">", ".+"))


def naively(entries: list[PermissionEntry], destination: Destination) -> bool:
    """Tell whether `east` may read from a destination: look at all entries that match."""
    found = [
        entry
        for entry in entries
        if expression(entry.pattern).fullmatch(destination.name)
        and entry.is_queue in (None, destination.is_queue)
    ]
    return any("east" in entry.read or "*" in entry.read for entry in found)


@given(entries, st.sampled_from(NAMES), st.sampled_from((queue, topic)))
def test_all_entries_that_match_a_name_add_up(
    entries: list[PermissionEntry], name: str, make: "type[Destination]"
) -> None:
    destination = make(name)  # type: ignore[call-arg, arg-type]
    assert PermissionMap(entries).allows(Right.READ, destination, ME) is naively(
        entries, destination
    )


@given(entries, patterns)
def test_a_wildcard_is_allowed_only_where_every_name_is(
    entries: list[PermissionEntry], pattern: str
) -> None:
    permissions = PermissionMap(entries)
    if permissions.allows(Right.READ, queue(pattern), ME):
        stands_for = filter(expression(pattern).fullmatch, NAMES)
        assert all(permissions.allows(Right.READ, queue(name), ME) for name in stands_for)


@pytest.mark.parametrize(
    ("pattern", "wildcard", "allowed"),
    [
        (">", ">", True),
        ("A.>", "A.>", True),
        ("A.>", "A.*", True),
        ("A.>", "A.B.*", True),
        ("A.>", ">", False),
        ("A.*", "A.>", False),
        ("A.*", "A.*", True),
        ("A.*", "*.*", False),
        ("A.B", "A.*", False),
    ],
)
def test_a_wildcard_needs_an_entry_as_wide(pattern: str, wildcard: str, allowed: bool) -> None:
    found = [PermissionEntry(pattern, read=ME), PermissionEntry("A.B", read=frozenset(("west",)))]
    assert PermissionMap(found).allows(Right.READ, queue(wildcard), ME) is allowed


def test_each_right_has_groups_of_its_own() -> None:
    one = PermissionMap(
        [
            PermissionEntry(
                "A", read=frozenset(("r",)), write=frozenset(("w",)), admin=frozenset(("a",))
            )
        ]
    )
    having = {
        right: [g for g in "rwa" if one.allows(right, queue("A"), frozenset(g))] for right in Right
    }
    assert having == {
        Right.READ: ["r"],
        Right.WRITE: ["w"],
        Right.CREATE: ["a"],
        Right.REMOVE: ["a"],
    }
