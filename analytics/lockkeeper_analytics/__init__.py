"""Spark over KahaDB journals: a DataSource, and one file per question asked of it.

Comes in: journal directories. Never here: the broker core, the store, a lock on a directory.
"""
