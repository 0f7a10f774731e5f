"""Access control: permissions by wildcard, the rights of a connection, the checks of each command.

Comes in: a user who is known by now, and commands. Never here: passwords, files, and anything
that a message passes through: rights are asked for when a producer, a consumer or a destination
is made, and when a producer turns to another destination.
"""
