"""Delivery of results: to a folder of this machine, or a URL that pyarrow knows."""

import re
import shutil
from pathlib import Path

from pyarrow import fs

from lockkeeper_analytics.comparison.runs import SUMMARY
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.job import PAGE
from lockkeeper_analytics.reading.storage import beside

LATEST = (PAGE, SUMMARY)
"""Files of the latest run that are beside the folders of all runs, too."""
_URL = re.compile(r"[a-z][a-z0-9+.-]*://")


def deliver(results: Path, target: str, run: str) -> str:
    """Copy *results* to the folder *run* of *target*, and return where that is.

    The page and its summary go to *target* itself, too: there are always the latest ones. Raises
    AnalyticsError for a place that cannot be written to.
    """
    try:
        if _URL.match(target):
            return _to_url(results, target, run)
        return _to_folder(results, Path(target), run)
    except (OSError, ValueError) as error:
        raise AnalyticsError(f"results cannot be written to {target}: {error}") from error


def _to_folder(results: Path, target: Path, run: str) -> str:
    place = target / run
    shutil.copytree(results, place, dirs_exist_ok=True)
    for name in filter(lambda name: (place / name).exists(), LATEST):
        # Whoever reads the page just now goes on reading the old one.
        new = target / f".{name}.new"
        shutil.copyfile(place / name, new)
        new.replace(target / name)
    return str(place)


def _to_url(results: Path, target: str, run: str) -> str:
    system, path = fs.FileSystem.from_uri(target)
    path = path.rstrip("/")
    local = fs.LocalFileSystem()
    system.create_dir(f"{path}/{run}", recursive=True)
    for file in sorted(results.iterdir()):
        fs.copy_files(str(file), f"{path}/{run}/{file.name}", local, system)
        if file.name in LATEST:
            fs.copy_files(str(file), f"{path}/{file.name}", local, system)
    return beside(target, run)
