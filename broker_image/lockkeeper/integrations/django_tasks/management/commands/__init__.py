"""Commands of `manage.py`, a file each. Never here: the work that they begin."""
