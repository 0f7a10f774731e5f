"""Names that belong to backups: labels and paths in pods."""

BACKUP_LABEL = "lockkeeper.dev/backup"
"""On Jobs and pods of a JournalBackup: its name."""
CONTAINER = "backup"
JOURNAL_PATH = "/var/lib/lockkeeper"
TARGET_PATH = "/backups"
REPORT_PATH = "/dev/termination-log"
"""Kubernetes puts what a container writes there into the pod's status."""
