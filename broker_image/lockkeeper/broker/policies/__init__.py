"""Decisions that a destination's policy makes, one file a policy.

Comes in: the policy of a destination, resolved once. Never here: a per-message search for it.
"""
