"""Integrations: other people's frameworks, each in a room of its own that nobody else imports.

Comes in: what a framework asks for, by its own names. Never here: what messaging means.
"""
