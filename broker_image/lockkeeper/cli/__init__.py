"""The command line: argument parsing and presentation.

Comes in: what a person typed. Never here: behaviour that another room could not call.
"""
