"""Links to brokers, in an event loop: sockets, handshakes, signs of life, the search for the next.

Comes in: the state of a connection, and what it wants to say. Never here: what it means.
"""
