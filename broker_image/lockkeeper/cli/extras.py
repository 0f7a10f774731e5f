"""Extras of a distribution: which one brings a package that is missing."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

OURS = "lockkeeper-mq"
_DISTRIBUTIONS = {"py4j": "pyspark", "yaml": "PyYAML"}
"""Distributions of our extras that bring packages of other names."""


def missing(program: str, module: str, found: "Distribution | None" = None) -> str:
    """Return what to say when *program* needs *module*, which is not installed.

    The extra is one of *found*, or of our own distribution.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    package = module.partition(".")[0]
    text = f"`{program}` needs {package}, which is not installed"
    if found is None:
        try:
            found = distribution(OURS)
        except PackageNotFoundError:
            return text
    extra = extra_with(_DISTRIBUTIONS.get(package, package), found.requires or ())
    return text if extra is None else f"{text}: pip install '{found.name}[{extra}]'"


def foreign(error: ModuleNotFoundError) -> str | None:
    """Return the module that is not installed; None when it is one of ours, which is a defect."""
    name = error.name or "lockkeeper"
    return None if name.startswith("lockkeeper") else name


def extra_with(package: str, requirements: Iterable[str]) -> str | None:
    """Return the extra that brings *package*, going by a distribution's requirements."""
    for requirement in requirements:
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra\s*==\s*[\"']([\w.-]+)", requirement)
        if name and extra and _normal(name[0]) == _normal(package):
            return extra[1]
    return None


def _normal(name: str) -> str:
    """Return a distribution's name, or a module's, as one is compared with the other."""
    return re.sub(r"[-_.]+", "-", name).lower()
