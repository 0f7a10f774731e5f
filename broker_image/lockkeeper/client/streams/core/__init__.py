"""Streams and groups as a client sees them, without I/O: messages, routes, shares, windows.

Comes in: answers of brokers, calls of an application. Never here: sockets, event loops, clocks.
"""
