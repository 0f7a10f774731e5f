"""Work of many steps: some of them in each turn, so that nobody waits for all of it."""

from collections.abc import Callable, Iterator

from lockkeeper.broker.context import Context


class Chore:
    """Work that goes on in the next turn when a turn has done enough of it.

    *steps* begins the work and yields what each step weighed, whatever unit that is in; a turn
    ends with the step that makes it *at_once* or more. Between two turns are *pause* ms at least.
    """

    def __init__(
        self,
        context: Context,
        steps: Callable[[], Iterator[int]],
        at_once: int,
        pause: int = 0,
    ) -> None:
        self._context = context
        self._steps = steps
        self._at_once = at_once
        self._pause = pause
        self._left: Iterator[int] | None = None
        self._is_begun = False

    def begin(self) -> None:
        """Do as much as belongs into one turn, and the rest later, unless it is being done."""
        if not self._is_begun:
            self._go_on()

    def begin_soon(self) -> None:
        """Begin in the next turn, unless it is being done: who asks often costs no more turns."""
        if not self._is_begun:
            self._is_begun = True
            self._context.call_soon(self._go_on)

    def _go_on(self) -> None:
        # What fails is begun anew, by whoever calls again: its iterator is at its end.
        self._is_begun = False
        left, self._left = self._left or self._steps(), None
        weight = 0
        for step in left:
            weight += step
            if weight >= self._at_once:
                self._left, self._is_begun = left, True
                self._context.timers.call_at(self._context.steady + self._pause, self._go_on)
                return
