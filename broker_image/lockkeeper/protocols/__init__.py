"""Wire protocols: bytes to commands of the core, outputs of the core to bytes.

Comes in: bytes received. Goes out: bytes to send. Never here: sockets, clocks, another protocol.
"""
