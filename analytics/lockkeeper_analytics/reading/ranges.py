"""Many numbers in a short text: ranges in order, such as `5-6,9`."""

from collections.abc import Iterable


def ranges_of(numbers: Iterable[int]) -> str:
    """Return *numbers* as ranges in order: `5-6,9`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def numbers_in(ranges: str) -> set[int]:
    """Return the numbers in *ranges*, as `ranges_of` writes them."""
    found: set[int] = set()
    for part in ranges.split(",") if ranges else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
