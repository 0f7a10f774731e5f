"""The format `lockkeeper` for Spark, batch and stream, and a session that knows it.

Comes in: pieces and batches of tables, offsets and tails of streams. Never here: how a journal is
read.
"""
