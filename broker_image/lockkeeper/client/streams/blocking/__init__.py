"""Streams for threads: the face for asyncio, its event loop in a thread of the connection.

Comes in: calls that wait. Never here: what streams mean, and coroutines of applications.
"""
