"""The image's entry point: `python -m lockkeeper_analytics.pods driver|executor|serve|… …`."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.pods.commands import command_of, serve
from lockkeeper_analytics.pods.first_process import run
from lockkeeper_analytics.spark.java import find_java_home

ERROR_EXIT = 1
CANNOT_START = 126


def main(arguments: list[str]) -> int:
    """Run what *arguments* say, and return its exit code."""
    environment = dict(os.environ)
    try:
        if arguments[:1] == ["serve"]:
            # Without Java, and without a folder for temporary files.
            return run(serve(arguments[1:]), environment)
        spark, java = spark_home(), find_java_home()
        environment |= {"SPARK_HOME": str(spark), "JAVA_HOME": str(java)}
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
        return run(command_of(arguments, environment, java, spark), environment)
    except AnalyticsError as error:
        print(f"lockkeeper: {error}", file=sys.stderr)
        return ERROR_EXIT
    except OSError as error:
        print(f"lockkeeper: {arguments[0]}: {error.strerror}", file=sys.stderr)
        return CANNOT_START


def spark_home() -> Path:
    """Return where Spark is: within PySpark; it is not imported, which would take a second."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise AnalyticsError("PySpark is not installed")
    return Path(found.origin).parent


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
