"""The API: pydantic models of the Broker and Destination resources.

Comes in: YAML documents. Never here: how a resource is carried out.
"""
