"""Shapes of bodies: which fields one has, and of which types; never a value.

Comes in: a body as text or octets. Never here: journals, files, Spark, what anybody wrote into a
field.
"""
