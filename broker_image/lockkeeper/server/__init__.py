"""The composition root: a Broker resource becomes store, core and listeners; lifecycle, pairs.

Comes in: validated resources. Never here: argument parsing, wire formats, dispatch decisions.
"""
