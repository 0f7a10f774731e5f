"""Policies of destinations, one file each; ActiveMQ's names and defaults.

Comes in: nothing but field types. Never here: which destinations a policy is for.
"""
