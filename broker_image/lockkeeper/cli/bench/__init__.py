"""`lockkeeper bench`: load on a broker, and how many messages a second it carries.

Comes in: what a person wants to measure. Never here: another way into a broker than the client.
"""
