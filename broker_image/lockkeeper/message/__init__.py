"""The one message: a lazy view over its loose OpenWire bytes; destinations and ids.

Comes in: bytes as the wire and the journal hold them. Never here: I/O, clocks, randomness, any
library beyond the standard one, or a decision about where a message goes.
"""
