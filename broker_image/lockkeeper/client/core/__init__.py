"""The client without I/O: what was sent, what has come, what the broker must know of it.

Comes in: frames that a broker sent, calls of an application, the time. Never here: sockets,
threads, event loops and clocks; the faces of the client have those.
"""
