"""RocketMQ's remoting protocol: what its clients of the lines 4.9 and 5 speak.

Comes in: bytes of a client. Goes out: bytes for it. Never here: sockets, clocks, how streams work.
"""
