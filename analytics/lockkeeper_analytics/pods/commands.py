"""Commands of the image's entry point, those of Spark's own image among them.

So Spark's operators and drivers can use it. `driver ARGUMENTS…` is spark-submit in client mode.
`executor` is started by drivers, and finds all that it needs in SPARK_… variables. `serve FOLDER
PORT` serves a folder to browsers. All else is run as it is.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lockkeeper_analytics.errors import AnalyticsError

BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
EXECUTOR_OPTIONS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
"""Options of the backend, and the variables that a driver sets for them."""
MEMORY = "SPARK_EXECUTOR_MEMORY"
BIND_ADDRESS = "SPARK_DRIVER_BIND_ADDRESS"
_JAVA_OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)")


def command_of(
    arguments: Sequence[str], environment: Mapping[str, str], java: Path, spark: Path
) -> list[str]:
    """Return the command line; *java* is a JAVA_HOME, *spark* a SPARK_HOME.

    Raises AnalyticsError for what is missing.
    """
    if not arguments:
        raise AnalyticsError("expected driver, executor, serve, or a command")
    what, *rest = arguments
    if what == "driver":
        return _driver(rest, environment, spark)
    if what == "executor":
        return _executor(environment, java, spark)
    return list(arguments)


def _driver(rest: list[str], environment: Mapping[str, str], spark: Path) -> list[str]:
    command = [str(spark / "bin" / "spark-submit")]
    address = environment.get(BIND_ADDRESS)
    if address:
        command += ["--conf", f"spark.driver.bindAddress={address}"]
        command += ["--conf", f"spark.executorEnv.SPARK_DRIVER_POD_IP={address}"]
    return [*command, "--deploy-mode", "client", *rest]


def _executor(environment: Mapping[str, str], java: Path, spark: Path) -> list[str]:
    needed = (MEMORY, *EXECUTOR_OPTIONS.values())
    missing = [name for name in needed if not environment.get(name)]
    if missing:
        raise AnalyticsError(f"executor: not set: {', '.join(missing)}")
    memory = environment[MEMORY]
    options = [
        part
        for name, variable in EXECUTOR_OPTIONS.items()
        for part in (name, environment[variable])
    ]
    return [
        str(java / "bin" / "java"),
        *java_options(environment),
        *(f"-Xms{memory}", f"-Xmx{memory}"),
        *("-cp", ":".join(_classpath(environment, spark))),
        BACKEND,
        *options,
    ]


def java_options(environment: Mapping[str, str]) -> list[str]:
    """Return Java's options in the order of the variables' numbers."""
    found = {
        int(match[1]): value
        for name, value in environment.items()
        if (match := _JAVA_OPTION.fullmatch(name))
    }
    return [found[number] for number in sorted(found)]


def _classpath(environment: Mapping[str, str], spark: Path) -> Iterator[str]:
    """Yield the places of classes, settings before libraries."""
    yield environment.get("SPARK_CONF_DIR") or str(spark / "conf")
    for name in ("HADOOP_CONF_DIR", "SPARK_EXTRA_CLASSPATH", "SPARK_CLASSPATH"):
        if environment.get(name):
            yield environment[name]
    yield f"{spark}/jars/*"
    if environment.get("SPARK_DIST_CLASSPATH"):
        yield environment["SPARK_DIST_CLASSPATH"]


def serve(rest: Sequence[str]) -> list[str]:
    """Return the command line that serves a folder; raises AnalyticsError for wrong arguments."""
    if len(rest) != 2 or not rest[1].isdigit():
        raise AnalyticsError("expected serve FOLDER PORT")
    folder, port = rest
    return [sys.executable, "-m", "http.server", "--directory", folder, port]
