from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper_api.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1", 1),
        ("64Ki", 65_536),
        ("64Mi", 67_108_864),
        ("1Gi", 1_073_741_824),
        ("1.5Gi", 1_610_612_736),
        ("2k", 2_000),
        ("3G", 3_000_000_000),
        (4096, 4096),
    ],
)
def test_sizes_are_read_with_their_units(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "Mi", "64MB", "64 Mi", "-1", "1e3", "64mi", "0.3", -1, True, 1.5, None, "1Mi\n"]
)
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"expected a size|whole number of bytes"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("1h30m", 5_400_000), ("0s", 0),
     ("1.5s", 1_500), ("250us", 0.25), ("1m30s", 90_000)],
)  # fmt: skip
def test_durations_are_read_with_their_units(text: str, milliseconds: float) -> None:
    assert parse_duration(text) == timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize(
    "text", ["", "30", 30, "s", "30 s", "-1s", "1d", "30S", None, "1s,", "999999999999999h"]
)
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"expected a duration|too long a duration"):
        parse_duration(text)


@given(st.integers(0, 2**60))
def test_a_size_survives_being_written_and_read(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.timedeltas(timedelta(0), timedelta(days=5000)))
def test_a_duration_survives_being_written_and_read(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


def test_values_are_written_in_their_largest_whole_unit() -> None:
    assert [format_size(size) for size in (0, 1023, 1024, 3 * 2**29)] == [
        "0", "1023", "1Ki", "1536Mi",
    ]  # fmt: skip
    assert format_duration(timedelta(minutes=90)) == "1h30m"
    assert format_duration(timedelta(milliseconds=1500)) == "1s500ms"
