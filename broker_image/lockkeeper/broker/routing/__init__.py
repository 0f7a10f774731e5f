"""Messages that go to other destinations than the one they were sent to, or to several.

Comes in: a message and where a client sent it. Goes out: which queues and topics get it, and what
each copy says of itself. Never here: storing and dispatch; and nothing that a message to a plain
destination passes through, because whether rules apply is settled when a destination is made.
"""
