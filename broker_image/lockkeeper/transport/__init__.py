"""Sockets and TLS; the only room with an asyncio.Protocol.

Comes in: connections of the operating system. Never here: what the bytes mean.
"""
