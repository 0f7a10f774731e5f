"""Testing: brokers for the tests of applications, and the pytest plugin that hands them out.

Comes in: what a test does to its broker. Never here: rules of messaging, or our own tests' needs.
Importing this room, and the plugin, imports no other one: pytest does so wherever it is installed.
"""
