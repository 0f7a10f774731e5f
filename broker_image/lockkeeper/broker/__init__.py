"""The sans-IO core: commands in, outputs out.

Comes in: commands of connections, completions of the store, the time as an argument. Goes out:
values in the outbox of a connection. Never here: sockets, files, clocks, threads, wire formats.
"""
