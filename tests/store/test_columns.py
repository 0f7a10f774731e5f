"""Columns of packed runs: as narrow as what they hold, and exact whatever that is."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.store.packed import column_of, each_of

ENDS = [
    bound + step
    for bits in (7, 15, 31)
    for bound in (1 << bits, -(1 << bits))
    for step in (-1, 0, 1)
]


@given(st.lists(st.sampled_from([*ENDS, 0, (1 << 63) - 1, -(1 << 63)]), min_size=1))
def test_a_column_says_what_it_was_made_of(values: list[int]) -> None:
    assert list(each_of(column_of(values), len(values))) == values


@pytest.mark.parametrize(
    ("most", "item_bytes"), [(127, 1), (128, 2), (32_767, 2), (32_768, 4), (1 << 31, 8)]
)
def test_a_column_is_as_narrow_as_its_greatest(most: int, item_bytes: int) -> None:
    column = column_of([0, most])
    assert isinstance(column, array)
    assert column.itemsize == item_bytes


def test_what_is_the_same_for_all_is_kept_once() -> None:
    assert column_of([7, 7, 7]) == 7
