"""From files to Arrow batches of records, and only of what is asked for.

Comes in: options, files of a journal wherever they are. Never here: Spark, a table other than the
records, what became of a message.
"""
