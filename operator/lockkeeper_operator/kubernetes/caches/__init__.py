"""Caches of the API server's objects, as far as the operator needs them, kept small.

Comes in: lists and changes of objects. Never here: a decision, or a parsed resource that stays:
objects are kept packed, and unpacked by who looks at one.
"""
