"""The client for threads: the same core, its event loop in a thread of the connection.

Comes in: calls that wait. Never here: what messaging means, and coroutines of applications.
"""
