"""Lockkeeper: a message broker that speaks OpenWire and keeps its messages in KahaDB.

The rooms, each importing only what stands to its right:
cli | integrations | testing → server → network | client → transport → protocols → broker → store →
journal → message
"""

from lockkeeper.speedups import install

install()
