"""Journals that are still written to: where a reader stands, what is new, what is gone.

Comes in: directories and offsets. Never here: Spark; `spark/stream.py` is its face there.
"""
