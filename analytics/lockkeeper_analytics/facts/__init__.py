"""Facts that several reports start from: SQL over the tables of journals, and how Spark runs it.

Comes in: records of the format `lockkeeper`. Never here: an answer, a page.
"""
