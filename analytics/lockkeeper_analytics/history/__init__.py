"""The history of records: what journals held, kept in Parquet files when their own are gone.

Comes in: directories of journals, a folder. Never here: Spark. `reading/kept.py` finds its files,
and `reading/kept_rows.py` reads them, as parts of a journal are read.
"""
