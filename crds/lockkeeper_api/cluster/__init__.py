"""Fields that only a cluster honours: one file for each concern of a spec.

Comes in: the settings of the operator. Never here: what changes how messages are treated.

`lockkeeper up` reads all of it, so that one file serves everywhere, and then passes it over;
the description of each field says so by beginning with "Cluster:".
"""
