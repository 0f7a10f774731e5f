"""`kubectl lockkeeper`: what a person does with a Broker in a cluster.

Comes in: kubectl's own options; everything else is asked of the cluster through kubectl, so that
contexts, logins and proxies are as the person has set them up. Never here: a second client of the
API server, or anything that the operator or a broker should do by itself.
"""
