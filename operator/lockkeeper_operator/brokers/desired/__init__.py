"""Desired children of a Broker: one pure builder for each kind of child, dicts out.

Comes in: a `Subject`, the Broker as it was read. Never here: a request, a clock, randomness, or
what is there at present.

Every builder is `build(subject) -> Manifest`, or yields several, or None for a child that is not
wanted; `children.py` knows them all.
"""
