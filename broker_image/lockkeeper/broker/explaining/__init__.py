"""Why things are as they are: pure functions of the core's state, in words and in JSON.

Comes in: the core, and a question about a queue, a message, a producer or a journal file.
Never here: anything that changes what is asked about.
"""
