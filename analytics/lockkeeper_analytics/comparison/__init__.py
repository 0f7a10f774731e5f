"""This run beside a former one: their headline figures, and what differs between the two.

Comes in: summaries as `report.json` has them. Never here: Spark, journals, HTML.
"""
