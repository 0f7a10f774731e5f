"""Backups: a journal as it was at one moment, copied while a broker writes it, and put back.

In come directories and URLs; out go files, and a manifest that names them. Never here: questions to
a broker, its lock, any change of the directory that is copied.
"""

from lockkeeper.store.backup.making import back_up
from lockkeeper.store.backup.manifest import Manifest
from lockkeeper.store.backup.restoring import copy_journal, holds_journal, restore

__all__ = ["back_up", "copy_journal", "restore", "holds_journal", "Manifest"]
