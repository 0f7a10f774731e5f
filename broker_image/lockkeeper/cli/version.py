"""The version of what is installed, as every command line tells it."""

from importlib.metadata import version

from lockkeeper import speedups


def version_line(program: str) -> str:
    """Return a line for people: also whether compiled modules run, where they are installed."""
    runs = f" ({speedups.running})" if speedups.running.is_installed else ""
    return f"{program} {version('lockkeeper-mq')}{runs}"
