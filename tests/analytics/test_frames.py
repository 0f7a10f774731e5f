"""Views as frames: each is made once, whichever threads ask for it."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from lockkeeper_analytics.facts.frames import Frames
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.texts import REPORT, names_read, view_texts


class Noted(Frames):
    """Frames that only note which of them are made."""

    def __init__(self):
        super().__init__(None, {})
        self.made = Counter()

    def _made(self, name):
        self.made[name] += 1
        for each in names_read(view_texts()[name]) & view_texts().keys():
            self.frame(each)
        time.sleep(0.002)
        return object()


def test_a_frame_is_made_once_whichever_threads_ask_for_it():
    frames = Noted()
    names = [name + REPORT for name in REPORTS]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(frames.frame, [*names, *reversed(names)]))
    assert set(frames.made.values()) == {1}
    assert frames.made.keys() >= set(names)
    assert found[: len(names)] == found[len(names) :][::-1]
