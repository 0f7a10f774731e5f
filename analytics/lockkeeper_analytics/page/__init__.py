"""The report page: rows of the reports to one HTML file that needs nothing from anywhere.

Comes in: the reports as lists of rows. Never here: Spark, journals, files but its own parts
(page.html, page.css, chart.js, page.js).
"""
