"""Interceptors: work on every message of a client before it reaches its destination.

Comes in: a message, and who sent it. Never here: anything that only some destinations want; that
is a policy, or a route. A broker that uses none of these pays for none.
"""
