"""KahaDB journal bytes to records and back.

Comes in: the bytes of data files, or paths to read them from. Never here: an open file handle
that outlives a call, locks, clocks, what a record means for a queue (that is the store).
"""
