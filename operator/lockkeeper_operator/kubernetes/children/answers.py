"""Answers of the API server to what is applied: an object as it makes it.

It leaves out zeros and empty text, writes amounts its own way, and admission may change more. Who
compared objects with what was asked for alone would apply them for ever.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from lockkeeper_operator.kubernetes.children.comparing import as_made, covers
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of

_Place: TypeAlias = tuple[str, Key]
"""Namespace of an object, and its kind and name."""


class Answers:
    """Knows the last answer about each object that is made otherwise than it was asked for."""

    def __init__(self) -> None:
        self._answers: dict[_Place, Manifest] = {}

    def note(self, manifest: Manifest, answer: Manifest) -> None:
        """Take note of the *answer* to applying a *manifest*."""
        place = _place_of(manifest)
        if covers(answer, manifest):
            self._answers.pop(place, None)
        else:
            self._answers[place] = as_made(answer, manifest)

    def about(self, children: Mapping[Key, Manifest]) -> dict[Key, Manifest]:
        """Return what is known of *children*: what was asked for, as the API server made it."""
        found = {key: self._answers.get(_place_of(child)) for key, child in children.items()}
        return {key: answer for key, answer in found.items() if answer is not None}

    def forget(self, children: Iterable[Manifest]) -> None:
        """Forget children that go."""
        for child in children:
            self._answers.pop(_place_of(child), None)


def _place_of(manifest: Manifest) -> _Place:
    return manifest["metadata"]["namespace"], key_of(manifest)
