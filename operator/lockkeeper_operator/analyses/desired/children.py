"""All children of an analysis, in the order in which they are applied."""

from collections.abc import Callable

from lockkeeper_operator.analyses.desired import (
    apache_application,
    config_map,
    cron_job,
    driver_service,
    job,
    journal_claim,
    page_claim,
    page_deployment,
    page_service,
    role,
    role_binding,
    scheduled_spark_application,
    service_account,
    spark_application,
)
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest

Builder = Callable[[AnalysisSubject], Manifest | None]

SUPPORTS: tuple[Builder, ...] = (
    service_account.build,
    role.build,
    role_binding.build,
    config_map.build,
    driver_service.build,
    journal_claim.build,
    page_claim.build,
    page_service.build,
    page_deployment.build,
)
"""What runs need comes before them."""
RUNS: tuple[Builder, ...] = (
    job.build,
    cron_job.build,
    spark_application.build,
    scheduled_spark_application.build,
    apache_application.build,
)
"""Exactly one of them builds something."""


def supports(subject: AnalysisSubject) -> tuple[Manifest, ...]:
    """Return what is to be there besides the run."""
    return _built(SUPPORTS, subject)


def run(subject: AnalysisSubject) -> Manifest:
    """Return the run, or what makes runs by a schedule."""
    (only,) = _built(RUNS, subject)
    return only


def _built(builders: tuple[Builder, ...], subject: AnalysisSubject) -> tuple[Manifest, ...]:
    found = (build(subject) for build in builders)
    return tuple(manifest for manifest in found if manifest is not None)
