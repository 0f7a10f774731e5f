"""Diagnostics of a scheduled message: what it waits for, which nobody consumes."""

from typing import TYPE_CHECKING

from lockkeeper.broker.diagnostics.reason import Reason
from lockkeeper.broker.scheduling.management import MANAGEMENT

if TYPE_CHECKING:
    from lockkeeper.broker.scheduling.job_queue import JobQueue, Obstacle
    from lockkeeper.store.base import Reference


def why_job(jobs: "JobQueue", reference: "Reference") -> Reason:
    """Return what a scheduled message waits for."""
    due, obstacle = jobs.due_of(reference), jobs.obstacle_to(reference)
    if due is None:
        return Reason("gone", "it was carried out just now", "none is needed", {})
    if obstacle is not None:
        return _why_kept(obstacle, due)
    left = due - jobs.context.now
    if left > 0:
        return Reason(
            "scheduled",
            f"it is a scheduled message, whose time comes in {left:,} ms",
            f"none is needed; a message to {MANAGEMENT} removes it",
            {"due": due},
        )
    return Reason(
        "next",
        "the time of this scheduled message has come, and it is about to be sent",
        "none is needed",
        {"due": due},
    )


def _why_kept(obstacle: "Obstacle", due: int) -> Reason:
    """Return why a scheduled message is not sent whose time has come."""
    if obstacle.is_defect:
        return Reason(
            "scheduled-set-aside",
            f"the time of this scheduled message has come, but to send it failed: {obstacle.text}",
            "it is tried again each second; it is a defect of the broker: the log has the first "
            "error with where it came from",
            {"due": due, "error": obstacle.text},
        )
    return Reason(
        "scheduled-without-room",
        f"the time of this scheduled message has come, but it is not taken: {obstacle.text}",
        "room where it goes, or a higher limit: it is tried again each second",
        {"due": due},
    )
