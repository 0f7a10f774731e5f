"""Management: Django looks for commands of an installed application here. Never here: work."""
