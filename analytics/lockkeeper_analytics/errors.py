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


class ForeignFileError(AnalyticsError):
    """A file that is named as those of a journal is none of one, by its first bytes."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: the file does not begin as one of a journal does, and no batch is in it: "
            "move it away, or leave it out with --skip-corrupt (in Spark: option corrupt=skip)"
        )


class QueryError(AnalyticsError):
    """A query is wrong, or is none; the text is DuckDB's."""


class NoJavaError(AnalyticsError):
    """No Java that Spark runs on was found."""
