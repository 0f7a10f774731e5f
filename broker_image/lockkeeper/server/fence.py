"""A fence around one process: it neither serves nor takes over until a person takes it away.

The order comes over the admin endpoint. A process that starts finds it in a file beside its
configuration, so that a fence also holds for a container that starts anew.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from lockkeeper_api.pod_names import FENCED_FILE

logger = logging.getLogger(__name__)


class Fence:
    """Fence of the process: `is_up` while it is fenced."""

    def __init__(self, files: Sequence[Path], replica: str, changed: Callable[[], None]) -> None:
        """*files* are the configuration's; *changed* is called when the fence comes or goes."""
        self.is_up = any(replica in _names(path.parent / FENCED_FILE) for path in files)
        self._changed = changed

    def set_up(self, up: bool) -> None:
        """Put the fence up, or down."""
        if up != self.is_up:
            self.is_up = up
            logger.warning("is to be fenced" if up else "is not fenced any more")
            self._changed()


def _names(path: Path) -> set[str]:
    try:
        return set(path.read_text("utf-8").split())
    except OSError:
        return set()
