"""`lockkeeper sql`: a question to journals, answered by DuckDB over the same tables as Spark's.

Comes in: a query, directories. Never here: Spark.
"""
