"""Consumers and what each may receive: windows, selectors, durable subscriptions, browsers.

Comes in: messages a region offers. Never here: which consumer of a queue is next.
"""
