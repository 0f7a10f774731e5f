"""Errors before or while a journal is read; every text says what to do."""


class AnalyticsError(Exception):
    """Base of the errors of this package."""


class OptionError(AnalyticsError):
    """An option of the data source has an unknown name or an impossible value."""


class RuleError(AnalyticsError):
    """A rule is no rule; the text says which part of it, and what was expected."""


class NoJournalError(AnalyticsError):
    """A directory is missing, cannot be read, or holds no journal file."""


class GoneError(AnalyticsError):
    """A file that a run has seen is not there any more, or is shorter than it was."""


class QueryError(AnalyticsError):
    """A query is wrong, or is none; the text is DuckDB's."""


class NoJavaError(AnalyticsError):
    """No Java that Spark runs on was found."""
