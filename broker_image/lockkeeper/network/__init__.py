"""Broker-to-broker bridges: demand comes one way, messages go the other.

Comes in: bytes of another broker, outputs of the core for it, the time as an argument. Goes out:
bytes for it, commands to the core. Never here: sockets, clocks, the way a single broker dispatches.
"""
