"""Desired state of a Destination: what its broker is told. Pure.

Comes in: the resource. Never here: what the broker has at present.
"""
