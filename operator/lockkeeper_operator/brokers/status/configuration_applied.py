"""ConfigurationApplied: the brokers say that they run with the present configuration."""

from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.kubernetes.verdict import NO, UNKNOWN, YES, Verdict

TYPE = "ConfigurationApplied"


def condition(facts: Facts) -> Verdict:
    """Return the condition; only what brokers themselves report counts."""
    wanted = facts.desired.configuration
    reports = {pod.name: pod.report for pod in facts.pods if pod.report is not None}
    for name, report in reports.items():
        if report.refused == wanted:
            return Verdict(
                TYPE, NO, "Refused", f"{name} refuses configuration {wanted}: {report.refusal}"
            )
    behind = [name for name, report in reports.items() if report.configuration != wanted]
    if behind:
        return Verdict(
            TYPE, NO, "Pending", f"{', '.join(behind)} still without configuration {wanted}"
        )
    silent = [name for name in facts.desired.pods if name not in reports]
    if silent or not reports:
        who = ", ".join(silent) or "nobody"
        return Verdict(
            TYPE, UNKNOWN, "NotReported", f"no report about configuration {wanted} from {who}"
        )
    return Verdict(TYPE, YES, "Applied", f"all brokers run with configuration {wanted}")
