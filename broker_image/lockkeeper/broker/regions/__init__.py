"""Queues and topics: what waits, and who gets the next message.

Comes in: messages sent, acknowledgements, consumers. Never here: wire formats, files.
"""
