"""Children of a resource: compared with their desired state, and brought to it.

Comes in: the children that are there, and those that are wanted. Never here: which children a
resource wants.
"""
