"""Pulls: a consumer with a window of 0 asks for its messages one by one (openwire.md 7.3)."""

from functools import partial
from typing import Final

from lockkeeper.broker.context import TICK_BYTES_MAX, Context
from lockkeeper.broker.subscriptions.consumer import Consumer

DO_NOT_WAIT: Final = -1
LOOKING_MS_MAX: Final = 1_000


def pull(context: Context, consumer: Consumer, timeout: int) -> None:
    """Ask for one message for a consumer.

    *timeout* is in ms: 0 waits for ever; -1 not at all, like any other negative value.
    """
    consumer.pulls += 1
    if consumer.pull_timer is not None:
        consumer.pull_timer.cancel()
    for backlog in consumer.backlogs:
        if context.unsent < TICK_BYTES_MAX:
            backlog.dispatch()
        else:
            backlog.activate()
    if not consumer.pulls or timeout == 0:
        return
    if timeout <= DO_NOT_WAIT:
        _end_when_all_is_seen(context, consumer, context.steady + LOOKING_MS_MAX)
        return
    consumer.pull_timer = context.timers.call_at(context.steady + timeout, consumer.end_pull)


def _end_when_all_is_seen(context: Context, consumer: Consumer, latest: int) -> None:
    """Tell who does not want to wait that there is nothing, but not before that is known.

    Looking through a long backlog for a selector takes several turns. At *latest* (ms of
    `steady`) it has taken too long for somebody who does not wait.
    """
    is_looking = any(each.is_active and not context.resting(each) for each in consumer.backlogs)
    if is_looking and consumer.credit() > 0 and context.steady < latest:
        again = partial(_end_when_all_is_seen, context, consumer, latest)
        consumer.pull_timer = context.timers.call_at(context.steady, again)
    else:
        consumer.end_pull()
