"""Destinations: from a resource and its broker's answers to steps, and to a status.

Comes in: resources as they were read, and what brokers have. Never here: a child of a Broker, an
analysis or a backup. Only the reconciler, and what it applies with, asks anybody; all other files
are pure.
"""
