"""Contents of the packages that users install: everything that runs, and nothing besides."""

import subprocess
import sys
import tarfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.patient]

PROJECT = Path(__file__).parents[2]
ROOTS = ("broker_image", "crds", "operator", "analytics")
PACKAGES = ("lockkeeper", "lockkeeper_api", "lockkeeper_operator", "lockkeeper_analytics")
BUILT_WITH = ("pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE", "NOTICE")
BUILD_SECONDS_MAX = 120


def tracked(*paths: str) -> list[str]:
    """Return the files that git tracks below *paths*."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", *paths], cwd=PROJECT, check=True, capture_output=True, text=True
    ).stdout
    return [name for name in listing.split("\0") if (PROJECT / name).is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the source distribution of what git tracks."""
    folder = tmp_path_factory.mktemp("release")
    for name in tracked(*BUILT_WITH, *ROOTS, "tests"):
        target = folder / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((PROJECT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, folder / "source"],
        check=True, capture_output=True, timeout=BUILD_SECONDS_MAX,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def names(built: Path) -> set[str]:
    """The files in the wheel."""
    (wheel,) = built.glob("*.whl")
    with ZipFile(wheel) as opened:
        return set(opened.namelist())


@pytest.fixture(scope="module")
def metadata(built: Path) -> Message:
    """The description of the distribution in the wheel."""
    (wheel,) = built.glob("*.whl")
    with ZipFile(wheel) as opened:
        (name,) = (each for each in opened.namelist() if each.endswith(".dist-info/METADATA"))
        return Parser().parsestr(opened.read(name).decode())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed(names: set[str], package: str) -> None:
    assert f"{package}/py.typed" in names


def test_every_file_of_the_packages_is_there_and_no_other(names: set[str]) -> None:
    folders = [f"{root}/{package}" for root, package in zip(ROOTS, PACKAGES, strict=True)]
    # Spark imports packages whose names begin like this one's.
    folders.append("analytics/pyspark_lockkeeper")
    wanted = {name.split("/", 1)[1] for name in tracked(*folders)}
    assert {name for name in names if ".dist-info/" not in name} == wanted


def test_the_license_comes_along(names: set[str], metadata: Message) -> None:
    kept = {name.split("/licenses/")[1] for name in names if "/licenses/" in name}
    assert kept == {"LICENSE", "NOTICE"}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]


def test_the_source_distribution_has_the_definitions_and_no_tests(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        found = {name.split("/", 1)[-1] for name in opened.getnames()}
    definitions = {name for name in tracked("crds") if name.endswith(".yaml")}
    assert len(definitions) == 5
    assert definitions | {"LICENSE", "NOTICE", "CHANGELOG.md"} <= found
    assert not {name for name in found if name.startswith("tests")}
