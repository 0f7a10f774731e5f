"""Room for messages: which limit keeps one out, and the sends that wait until there is room.

Comes in: a message that a client sent, and the destinations it is for. Goes out: whether it may
come in now. Never here: acknowledgements and the outcome of transactions, which never wait for
room; and the limits of the disk, which the store knows.
"""
