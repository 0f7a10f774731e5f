"""Settings of Spark."""

from lockkeeper_api.units import MEBIBYTE
from lockkeeper_operator.analyses.names import (
    BLOCK_MANAGER_PORT,
    DRIVER_PORT,
    EXECUTOR_CONTAINER,
    EXECUTOR_FILE,
    SETTINGS_PATH,
)
from lockkeeper_operator.analyses.subject import EXECUTORS, AnalysisSubject

# Java without memory may go on for ever, and get nothing done: its pod is to fail instead.
_END_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
# A driver plans, and leaves the work to executors: code that comes sooner is better than faster
# code. With its first compiler alone Java has 48 MB for code, which that of all reports may fill.
_EARLY_CODE = " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
DEFAULTS = {
    # The last lines of a log are to be those of whatever went wrong.
    "spark.log.level": "WARN",
    "spark.driver.defaultJavaOptions": _END_WITHOUT_MEMORY,
    "spark.executor.defaultJavaOptions": _END_WITHOUT_MEMORY,
    # Plans of reports that were made before would fill the heap.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "100",
}
"""Those that a spec may change."""
COMMON = {
    "spark.sql.session.timeZone": "UTC",
    # A data source of ours that takes filters is refused without it.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    # Pods own what Spark makes for them, and claims are never its: it need not delete either.
    "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    "spark.kubernetes.driver.service.deleteOnTermination": "false",
}


def mebibytes(size: int) -> str:
    """Return *size* bytes as Spark writes it, rounded up."""
    return f"{-(-size // MEBIBYTE)}m"


def spark_settings(subject: AnalysisSubject) -> dict[str, str]:
    """Return the settings that every engine needs; what it relies on wins over the spec's own."""
    own = {**DEFAULTS, **_for_planning(subject), **subject.spec.spark_conf}
    return {**own, **COMMON}


def _for_planning(subject: AnalysisSubject) -> dict[str, str]:
    """Return what lets a driver with executors plan quickly, while these start."""
    if not subject.has_executors:
        return {}
    executors = subject.executors
    dynamic = executors.dynamic_allocation
    most = dynamic.max if dynamic is not None else executors.instances or EXECUTORS
    return {
        "spark.driver.defaultJavaOptions": _END_WITHOUT_MEMORY + _EARLY_CODE,
        # By default Spark lets nothing begin before four fifths of the executors are there.
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        # So nobody can count their cores, and the driver makes at least a task of a shuffle for
        # each.
        "spark.default.parallelism": str(most * executors.resources.cores),
    }


def sizes(subject: AnalysisSubject) -> dict[str, str]:
    """Return the settings of how much driver and executors get."""
    driver, executor = subject.spec.resources, subject.executors.resources
    return {
        "spark.driver.cores": str(driver.cores),
        "spark.driver.memory": mebibytes(driver.memory),
        "spark.driver.memoryOverhead": mebibytes(driver.overhead),
        "spark.executor.cores": str(executor.cores),
        "spark.executor.memory": mebibytes(executor.memory),
        "spark.executor.memoryOverhead": mebibytes(executor.overhead),
        **_allocation(subject),
    }


def _allocation(subject: AnalysisSubject) -> dict[str, str]:
    dynamic = subject.executors.dynamic_allocation
    if dynamic is None:
        return {"spark.executor.instances": str(subject.executors.instances or EXECUTORS)}
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(dynamic.min),
        "spark.dynamicAllocation.initialExecutors": str(dynamic.min),
        "spark.dynamicAllocation.maxExecutors": str(dynamic.max),
    }


def native_settings(subject: AnalysisSubject) -> dict[str, str]:
    """Return the settings of a driver of ours, which makes its executors itself."""
    host = f"{subject.driver_service}.{subject.namespace}.svc.{subject.domain}"
    return {
        **spark_settings(subject),
        **sizes(subject),
        "spark.app.name": subject.name,
        "spark.kubernetes.namespace": subject.namespace,
        "spark.kubernetes.container.image": subject.image,
        "spark.kubernetes.container.image.pullPolicy": subject.spec.image.pull_policy,
        "spark.kubernetes.executor.podTemplateFile": f"{SETTINGS_PATH}/{EXECUTOR_FILE}",
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
        "spark.driver.host": host,
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_MANAGER_PORT),
        **_pull_secrets(subject),
    }


def _pull_secrets(subject: AnalysisSubject) -> dict[str, str]:
    names = ",".join(subject.spec.image.pull_secrets)
    return {"spark.kubernetes.container.image.pullSecrets": names} if names else {}
