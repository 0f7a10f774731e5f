"""Programs of the analytics image in a cluster: its entry point, and the application for Spark.

Comes in: arguments and environment as Spark and the operator set them. Never here: what a journal
says or a report asks.
"""
