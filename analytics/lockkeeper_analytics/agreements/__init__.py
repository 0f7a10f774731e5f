"""Service level agreements: rules in a line each, and when they were broken.

Comes in: rules as text, rows of reports in Parquet files. Never here: Spark, journals, HTML.
"""
