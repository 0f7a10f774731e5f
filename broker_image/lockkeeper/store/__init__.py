"""Storage of everything that outlives the process: messages, acknowledgements, transactions.

Comes in: references to messages and the operations on them. Never here: sockets, protocols,
consumers, or the choice of who gets a message.
"""
