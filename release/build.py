"""The release: packages, bills of materials, chart and images' digests in dist/, then tried out.

Everything is made from the last commit, in a folder of its own, with the commit's time for a
clock. Nothing is published.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import smoke
import yaml

PROJECT = Path(__file__).resolve().parents[1]
DIST = PROJECT / "dist"
LOCKS = {
    "broker": "broker_image/requirements.lock",
    "operator": "operator/requirements.lock",
    "analytics": "analytics/requirements.lock",
}
"""The versions that each image has."""
UNAVAILABLE = 75
"""How scripts of ours end when the machine lacks something."""


class ReleaseError(Exception):
    """The release cannot be made; the text says what to do."""


def main() -> int:
    """Make the release and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-images", action="store_true", help="build no images")
    options = parser.parse_args()
    try:
        with TemporaryDirectory() as folder:
            source = Path(folder) / "source"
            version = export(source)
            build(source, version, images=not options.without_images)
    except (ReleaseError, smoke.SmokeError, subprocess.SubprocessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"Ready in {DIST.name}/: {', '.join(sorted(path.name for path in DIST.iterdir()))}")
    return 0


def export(source: Path) -> str:
    """Write the last commit to *source* and return its version. Raises ReleaseError."""
    if run("git", "status", "--porcelain"):
        raise ReleaseError("there are changes that are not committed: commit or remove them")
    source.mkdir()
    run("sh", "-c", 'git archive HEAD | tar -x -C "$1"', "sh", str(source))
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "log", "-1", "--format=%ct")
    version = version_of(source)
    if f"## [{version}]" not in (source / "CHANGELOG.md").read_text("utf-8"):
        say(f"A rehearsal: CHANGELOG.md has no entry for {version}")
    return version


def version_of(source: Path) -> str:
    """Return the version that project and chart agree on. Raises ReleaseError."""
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    chart = yaml.safe_load((source / "charts/lockkeeper/Chart.yaml").read_text("utf-8"))
    (speedups,) = project["optional-dependencies"]["speedups"]
    versions = {
        project["version"],
        speedups.partition("==")[2],
        chart["version"],
        chart["appVersion"],
    }
    if len(versions) > 1:
        raise ReleaseError(
            f"pyproject.toml and Chart.yaml name different versions: {', '.join(sorted(versions))}"
        )
    return str(project["version"])


def build(source: Path, version: str, *, images: bool) -> None:
    """Fill dist/ from *source*, and try what is there. Raises ReleaseError."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    say("Wheel and source distribution")
    run(sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(DIST), str(source))
    say("Compiled modules")
    build_speedups(source)
    say("Bills of materials")
    for image, lock in LOCKS.items():
        describe_materials(source, lock, DIST / f"lockkeeper-{image}-{version}.cdx.json")
    say("Chart")
    package_chart(source)
    say("Images")
    if images:
        build_images(source, version)
    else:
        skip("images", "--without-images")
    write_sums()
    say("The wheel in a fresh environment")
    (wheel,) = DIST.glob("lockkeeper_mq-*.whl")
    print(smoke.try_wheels([wheel], version))
    for compiled in DIST.glob("lockkeeper_mq_speedups-*.whl"):
        print(smoke.try_wheels([wheel, compiled], f"{version} (compiled)"))


def build_speedups(source: Path) -> None:
    """Compile the hot modules, where there is what compiles C."""
    if shutil.which("cc") is None:
        skip("compiled modules", "there is no C compiler")
        return
    command = (sys.executable, "-m", "build", "--installer", "uv", "--wheel")
    run(*command, "--outdir", str(DIST), str(source / "speedups"))


def describe_materials(source: Path, lock: str, target: Path) -> None:
    """Write what a lock pins as CycloneDX."""
    run(
        sys.executable, "-W", "ignore", "-m", "cyclonedx_py", "requirements", str(source / lock),
        "--pyproject", str(source / "pyproject.toml"), "--output-reproducible", "--validate",
        "--output-file", str(target),
    )  # fmt: skip


def package_chart(source: Path) -> None:
    """Package the chart, where there is helm or Go to build it."""
    helm = attempt(source / "e2e/cluster/helm.sh")
    if helm is None:
        skip("chart", "there is no helm, and no Go to build it")
        return
    run(helm, "package", str(source / "charts/lockkeeper"), "--destination", str(DIST))


def build_images(source: Path, version: str) -> None:
    """Build the images, and note the digests of their configurations, which pushing keeps."""
    if shutil.which("docker") is None and shutil.which("buildah") is None:
        skip("images", "there is neither docker nor buildah")
        return
    os.environ["TAG"] = version
    parts = ("broker_image", "operator", "analytics")
    names = attempt(source / "e2e/images.sh", *parts)
    if names is None:
        skip("images", "this machine cannot build them, see above")
        return
    lines = [f"{digest_of(name)}  {name}\n" for name in names.splitlines()]
    (DIST / f"lockkeeper-images-{version}.txt").write_text("".join(lines), "utf-8")


def digest_of(image: str) -> str:
    """Return the digest of an image's configuration."""
    for command in (
        ("docker", "image", "inspect", "--format", "{{.Id}}", image),
        ("buildah", "inspect", "--type", "image", "--format", "{{.FromImageID}}", image),
    ):
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return f"sha256:{done.stdout.strip().removeprefix('sha256:')}"
    raise ReleaseError(f"{image} was built, but neither docker nor buildah finds it")


def write_sums() -> None:
    """Write the SHA-256 of every file, as `sha256sum --check` reads them."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(DIST.iterdir())
    ]
    (DIST / "SHA256SUMS").write_text("".join(lines), "utf-8")


def attempt(*command: str | Path) -> str | None:
    """Return what a script of ours prints, None when the machine lacks what it needs."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == UNAVAILABLE:
        return None
    if done.returncode:
        raise ReleaseError(f"{command[0]} ended with code {done.returncode}")
    return done.stdout.strip()


def run(*command: str) -> str:
    """Return what a command prints. Raises ReleaseError with its output when it fails."""
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout.strip()


def say(title: str) -> None:
    """Print a heading."""
    print(f"\033[1m==> {title}\033[0m", flush=True)


def skip(part: str, reason: str) -> None:
    """Tell that a part is left out, and why."""
    print(f"Left out: {part} ({reason})", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
