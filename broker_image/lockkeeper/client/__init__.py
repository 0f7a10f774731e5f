"""The Python client: connections, sessions, producers, consumers, failover.

Comes in: what an application wants to send and receive. Never here: anything of the broker core.
"""
