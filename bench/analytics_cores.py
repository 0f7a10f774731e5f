"""How much quicker `lockkeeper analyze` is with more cores, over the journals of several brokers.

`bench/big_journal.py` writes the journals, which are removed in the end. Some of them are analysed
by each master of Spark, with so many cores of the machine for all that the run does: driver, Java
and Python. Then the last master analyses all of them: what the driver takes must not grow with
them. A table tells times, the speed-up, what was read of files beside what journals have, what
was shuffled, and memory; a sentence, what that says of a terabyte.

`local[1] local[2]` compares cores of one Spark; `local-cluster[1,1,1024] local-cluster[2,1,1024]`
compares executors, Java processes of their own.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import big_journal
from spark_run import SparkRun, analyze, markdown, mebibytes, table_line

HEADS = [
    *("master", "cores", "journals", "seconds", "MB/s", "speed-up", "read / journal", "jobs"),
    *("shuffled", "GC", "Python driver", "Java", "largest worker"),
]
TERABYTE = 1e12


def size_of(journals: list[Path]) -> int:
    """Return how many bytes the files of *journals* have."""
    return sum(path.stat().st_size for each in journals for path in each.iterdir())


def row_of(master: str, cores: int, size: int, run: SparkRun, speed_up: str) -> list[str]:
    """Return what the table tells of a *run* over *size* bytes."""
    return [
        f"`{master}`",
        str(cores),
        f"{size / 1e9:.2f} GB",
        f"{run.seconds:.0f}",
        f"{size / 1e6 / run.seconds:.1f}",
        speed_up,
        f"{run.bytes_read / size:.3f}",
        str(run.logged.jobs),
        mebibytes(run.logged.shuffled),
        f"{run.logged.gc_seconds:.1f} s",
        mebibytes(run.peaks.driver),
        mebibytes(run.peaks.java),
        mebibytes(run.peaks.one_worker),
    ]


def told_of_a_terabyte(size: int, seconds: float, cores: int, wanted: int = 32) -> str:
    """Return how long a terabyte takes on *wanted* cores, if the rest goes as this run went."""
    rate = size / seconds / cores
    hours = TERABYTE / (rate * wanted) / 3600
    return (
        f"At {rate / 1e6:.1f} MB/s of a core, a terabyte takes {wanted} cores {hours:.1f} hours, "
        "if they get on as these did and the store feeds them "
        f"{rate * wanted / 1e6:,.0f} MB/s: an extrapolation, not a run."
    )


def main() -> None:
    """Write the journals, run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=3.0, help="of all journals together")
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--fewer", type=int, default=3, help="of them that all masters analyse")
    parser.add_argument("--masters", nargs=2, default=["local[1]", "local[2]"])
    parser.add_argument("--cores", nargs=2, type=int, default=[1, 2], help="that masters have")
    parser.add_argument("--directory", type=Path, help="where journals are written")
    parser.add_argument("--report", nargs="*", default=[], help="only these; all by default")
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="lockkeeper-bench-", dir=asked.directory) as folder:
        journals = [Path(folder) / f"broker-{number}" for number in range(asked.brokers)]
        for each in journals:
            big_journal.make(each, asked.gigabytes / asked.brokers)
        compare(journals, Path(folder) / "report", asked)


def compare(journals: list[Path], out: Path, asked: argparse.Namespace) -> None:
    """Run, and print the table: line by line, for a run may take hours."""
    more = [word for name in asked.report for word in ("--report", name)]
    fewer = journals[: asked.fewer]
    (one, several), (few_cores, cores) = asked.masters, asked.cores
    print(markdown(HEADS, []), flush=True)
    first = analyze(fewer, out, one, *more, cores=few_cores)
    tell(row_of(one, few_cores, size_of(fewer), first, "1"))
    second = analyze(fewer, out, several, *more, cores=cores)
    speed_up = f"{first.seconds / second.seconds:.2f}"
    tell(row_of(several, cores, size_of(fewer), second, speed_up))
    everything = analyze(journals, out, several, *more, cores=cores)
    tell(row_of(several, cores, size_of(journals), everything, ""))
    print()
    print(told_of_a_terabyte(size_of(journals), everything.seconds, cores))


def tell(row: list[str]) -> None:
    """Print a line of the table."""
    print(table_line(row), flush=True)


if __name__ == "__main__":
    main()
