"""Desired state of a network: its bridges, and a Secret with the password of its user. Pure.

Comes in: the resource, and the Brokers that are in it. Never here: which bridges there are.
"""
