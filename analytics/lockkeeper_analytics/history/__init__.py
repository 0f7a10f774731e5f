"""The history of records: what journals held, kept in tables when their own files are gone.

Comes in: directories of journals, a folder or URL. Never here: Spark. `reading/histories.py` finds
its files, and `reading/kept_rows.py` reads them, as parts of a journal are read.
"""
