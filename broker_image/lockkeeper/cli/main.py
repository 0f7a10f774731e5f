"""The command `lockkeeper`, and that of kubectl: they begin without what is not installed.

Nothing is imported here that a command may not need; see `lockkeeper.cli.commands`.
"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lockkeeper.cli.errors import FAILED, wants_traceback
from lockkeeper.cli.extras import extra_of, foreign, missing

_IN_CLUSTER = re.compile(r"brokers?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; see `entry.run`."""
    words = sys.argv[1:] if arguments is None else arguments
    if analyses_a_broker(words):
        whole = extra_of(words, is_in_cluster=True)
        return _begin("lockkeeper", whole, lambda: _in_cluster(words, "lockkeeper"))
    return _begin("lockkeeper", extra_of(words, is_in_cluster=False), lambda: _run(words))


def kubectl(arguments: list[str] | None = None) -> int:
    """Run `kubectl lockkeeper` and return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    program, whole = "kubectl lockkeeper", extra_of(words, is_in_cluster=True)
    return _begin(program, whole, lambda: _in_cluster(words, program))


def _begin(program: str, whole: str, run: Callable[[], int]) -> int:
    try:
        return run()
    except ModuleNotFoundError as error:
        absent = foreign(error)
        if absent is None or wants_traceback():
            raise
        print(f"{program}: {missing(program, absent, whole=whole)}", file=sys.stderr)
        return FAILED


def _run(words: Sequence[str]) -> int:
    if list(words) == ["--version"]:
        from lockkeeper.cli.version import version_line

        print(version_line("lockkeeper"))
        return 0
    from lockkeeper.cli.commands import app
    from lockkeeper.cli.entry import run

    return run(app, "lockkeeper", words)


def _in_cluster(words: list[str], program: str) -> int:
    from lockkeeper.cli.cluster.main import main as in_cluster

    return in_cluster(words, program)


def analyses_a_broker(words: Sequence[str]) -> bool:
    """Tell whether `analyze` is to read the journal of a Broker in a cluster: `broker/NAME`.

    A directory that is called so comes first.
    """
    named = (word for word in words[1:] if _IN_CLUSTER.fullmatch(word))
    return words[:1] == ["analyze"] and any(not Path(word).is_dir() for word in named)


if __name__ == "__main__":
    sys.exit(main())
