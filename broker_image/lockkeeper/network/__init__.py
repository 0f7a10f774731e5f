"""Broker-to-broker bridges.

Comes in: outputs of the core for another broker. Never here: the way a single broker dispatches.
"""
