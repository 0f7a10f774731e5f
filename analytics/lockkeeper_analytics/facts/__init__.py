"""Facts that several reports start from: records and recorder lines as data frames.

Comes in: records of the format `lockkeeper`. Never here: an answer, a page.
"""
