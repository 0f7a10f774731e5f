"""Bridges of a process: sockets to other brokers, dialled again whenever one is lost.

Comes in: network connectors of the resource, connections that other brokers dialled. Never here:
what a bridge says, and which messages it forwards.
"""
