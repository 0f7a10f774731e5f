"""Arguments of the application in the image: the journal, the reports, the output.

docs/operating/analyses.md documents them for SparkApplications that are written by hand.
"""

from collections.abc import Iterator

from lockkeeper_api.analysis.history import History
from lockkeeper_operator.analyses.names import HISTORY_PATH, JOURNAL_PATH, RESULTS_PATH
from lockkeeper_operator.analyses.subject import AnalysisSubject


def arguments(subject: AnalysisSubject) -> list[str]:
    """Return the arguments of the application."""
    return ["--journal", journal_location(subject), "--out", results(subject), *_asked(subject)]


def journal_location(subject: AnalysisSubject) -> str:
    """Return where the journal is, as drivers and executors see it."""
    journal = subject.journal
    return journal.url or "/".join(part for part in (JOURNAL_PATH, journal.path) if part)


def results(subject: AnalysisSubject) -> str:
    """Return where results are written, as the driver sees it; each run makes a directory there."""
    output = subject.spec.output
    if output.path is not None:
        return output.path
    within = output.claim.path.strip("/") if output.claim is not None else ""
    return "/".join(part for part in (RESULTS_PATH, within) if part)


def result_location(subject: AnalysisSubject, run: str) -> str:
    """Return where the results of a run are, for people."""
    output = subject.spec.output
    if output.path is not None:
        # Settings of the file system, such as `?region=…`, stay behind.
        place, mark, settings = output.path.partition("?")
        return f"{place.rstrip('/')}/{run}{mark}{settings}"
    if output.claim is not None:
        within = output.claim.path.strip("/")
        return "/".join(part for part in (f"claim {output.claim.name}:", within, run) if part)
    return f"{page_address(subject)}{run}/"


def page_address(subject: AnalysisSubject) -> str:
    """Return the address of the served page in the cluster, empty where there is none."""
    served = subject.served
    if served is None:
        return ""
    return f"http://{subject.page}.{subject.namespace}.svc.{subject.domain}:{served.port}/"


def _history(history: History) -> str:
    """Return where records are kept, as drivers and executors see it."""
    if history.path is not None:
        return history.path
    within = history.claim.path.strip("/") if history.claim is not None else ""
    return "/".join(part for part in (HISTORY_PATH, within) if part)


def _asked(subject: AnalysisSubject) -> Iterator[str]:
    spec = subject.spec
    if spec.history is not None:
        yield from ("--history", _history(spec.history), "--broker", subject.kept_as)
    for name in spec.reports:
        yield from ("--report", name)
    for rule in spec.rules:
        yield from ("--rule", rule)
    if spec.bodies is not None:
        yield "--bodies"
        for mask in spec.bodies.masks:
            yield from ("--mask", mask)
    for option in ("since", "until", "destination"):
        value = getattr(spec, option)
        if value is not None:
            yield from (f"--{option}", value)
