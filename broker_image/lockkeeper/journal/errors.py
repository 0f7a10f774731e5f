"""Errors in the bytes of a journal; every text names the file and the offset."""


class JournalError(Exception):
    """Base of the errors of this room."""


class CorruptBatchError(JournalError):
    """A batch is damaged: its control record, its length or its Adler-32 is wrong.

    `offset` is where the batch begins, in bytes from the start of the file.
    """

    def __init__(self, file_name: str, offset: int, reason: str) -> None:
        super().__init__(f"{file_name}: corrupt batch at offset {offset}: {reason}")
        self.file_name = file_name
        self.offset = offset
        self.reason = reason


class BadRecordError(JournalError):
    """A record inside a sound batch is not what kahadb.md section 3 says.

    `offset` is where the record's header begins, in bytes from the start of the file.
    """

    def __init__(self, reason: str, file_name: str = "", offset: int = 0) -> None:
        super().__init__(f"{file_name or 'journal'}: bad record at offset {offset}: {reason}")
        self.file_name = file_name
        self.offset = offset
        self.reason = reason
