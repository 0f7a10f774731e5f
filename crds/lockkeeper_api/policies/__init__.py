"""What a destination can do differently, one file a policy; ActiveMQ's names and defaults.

Comes in: nothing but field types. Never here: which destinations a policy is for.
"""
