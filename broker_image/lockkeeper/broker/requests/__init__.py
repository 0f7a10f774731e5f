"""Requests: messages that the broker carries out itself, and answers to their JMSReplyTo.

Comes in: what a request is to do, in steps, from the rooms that know (figures, scheduled
messages). Each connection's requests have their turns, and what they are answered with is taken
as a message of the asker's would be. Never here: what is asked for.
"""
