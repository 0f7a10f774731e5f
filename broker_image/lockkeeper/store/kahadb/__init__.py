"""The store that keeps a KahaDB directory, as ActiveMQ does.

Comes in: the operations of the store's interface, a directory. Never here: who gets a message.
"""

from lockkeeper.store.kahadb.lock import DirectoryLock
from lockkeeper.store.kahadb.store import KahaDBStore

__all__ = ["KahaDBStore", "DirectoryLock"]
