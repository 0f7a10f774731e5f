"""Diagnostics: pure functions of the core's state that say why things are as they are.

Comes in: the core, and a question about a queue, a message, a producer or a journal file.
Never here: anything that changes what is asked about.
"""
