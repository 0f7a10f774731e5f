"""OpenWire 1 to 12, loose and uncached: what ActiveMQ's own clients speak.

Comes in: bytes of a client. Goes out: bytes for it. Never here: sockets, clocks, dispatch.
"""
