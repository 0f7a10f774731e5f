"""The command `lockkeeper-operator`, which names its extra where that is not installed."""

import sys


def main() -> int:
    """Run the operator and return its exit code."""
    try:
        from lockkeeper_operator.__main__ import main as run
    except ModuleNotFoundError as error:
        package = (error.name or "lockkeeper_operator").partition(".")[0]
        if package.startswith("lockkeeper"):
            raise
        print(
            f"lockkeeper-operator: it needs {package}, which is not installed: "
            "pip install 'lockkeeper-mq[operator]'",
            file=sys.stderr,
        )
        return 1
    run()
    return 0
