"""The life of messages: from an id, step by step through destinations and journals.

Comes in: a message id or correlation id, directories. Never here: what a page shows.
"""
