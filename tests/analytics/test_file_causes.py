"""Files that keep each other: told by Python for Spark, and by a recursive query of DuckDB."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper_analytics.facts.functions import SEVERAL, file_causes
from lockkeeper_analytics.tables.database import dialect

FILES = list(range(1, 8))


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect(":memory:") as connection:
        connection.execute(dialect())
        yield connection


def test_a_file_stays_while_what_its_records_end_is_in_one_that_stays():
    links = ([2, 3, 5], [1, 2, 4])
    assert file_causes([1, 2, 3, 4, 5], [1], *links) == [1, 1, 1, None, None]
    assert file_causes([1, 2, 3, 4, 5], [], *links) == [None] * 5
    assert file_causes([4, 5], [5], *links) == [None, 5]


def test_what_only_one_file_keeps_would_go_with_it():
    links = ([2, 3, 3, 5], [1, 2, 4, 5])
    assert file_causes([1, 2, 3, 4, 5], [1, 4, 5], *links) == [1, 1, SEVERAL, 4, 5]


def test_files_may_end_messages_in_each_other():
    assert file_causes([1, 2], [1], [1, 2], [2, 1]) == [1, 1]


def test_a_journal_may_have_nothing_that_refers_to_anything():
    assert file_causes([1], None, None, None) == [None]


@given(
    needed=st.lists(st.sampled_from(FILES), unique=True),
    links=st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from(FILES)), unique=True),
)
def test_both_engines_say_the_same(connection, needed, links):
    sources, targets = [link[0] for link in links], [link[1] for link in links]
    asked = "SELECT file_causes(?::INT[], ?::INT[], ?::INT[], ?::INT[])"
    (told,) = connection.execute(asked, [FILES, needed, sources, targets]).fetchone()
    assert told == file_causes(FILES, needed, sources, targets)
