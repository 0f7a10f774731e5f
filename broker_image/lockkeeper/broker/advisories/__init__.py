"""Advisories: what the broker tells of itself through topics called ActiveMQ.Advisory.*.

Comes in: what has just happened, told by the part of the core where it did. Goes out: a message
to the topic for it, if anybody listens there. Never here: anything that decides what happens; a
broker without listeners builds nothing. There are no advisories about advisories.
"""
