"""Brokers: from a resource, its children and its pods to steps, and to a status.

Comes in: resources and objects as they were read, and what brokers say. Never here: a Destination,
an analysis or a backup. Only the reconciler, and what it applies and finds credentials with, asks
anybody; all other files are pure.
"""
