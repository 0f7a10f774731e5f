"""The backend of django.tasks (Django 6), and `manage.py lockkeeper_worker`.

Comes in: Django's tasks and settings. Never here: results of tasks, which a broker does not keep.
"""
