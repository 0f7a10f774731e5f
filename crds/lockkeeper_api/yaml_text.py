"""YAML text to documents that remember where everything stood."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

TEXT_CHARACTERS_MAX = 4 * 1024 * 1024
"""Length of one file."""


class _Loader(yaml.SafeLoader):
    """Leaves times as the text that they are, as Kubernetes does."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in choices if not tag.endswith(":timestamp")]
    for first, choices in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: where it stands, what it says, and its nodes for line numbers."""

    source: str
    number: int
    node: yaml.Node
    value: Any

    def where(self, path: tuple[str | int, ...] = ()) -> str:
        """Return the place of the field at *path*, as text that begins a complaint."""
        node = self.node
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            node = found
        return f"{self.source}, line {node.start_mark.line + 1}, {self.title}"

    @property
    def title(self) -> str:
        """The document's number, kind and name, for people."""
        value = self.value if isinstance(self.value, dict) else {}
        metadata = value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        described = f"{value.get('kind')} {name}" if name else value.get("kind")
        return f"document {self.number}" + (f" ({described})" if described else "")


def read_documents(text: str, source: str) -> Iterator[Document]:
    """Yield the documents of *text* that are not empty.

    Raises yaml.YAMLError for text that is no YAML, ValueError for one that says a thing twice.
    """
    if len(text) > TEXT_CHARACTERS_MAX:
        raise ValueError(f"longer than {TEXT_CHARACTERS_MAX} characters")
    loader = _Loader(text)
    number = 0
    while loader.check_node():
        node: yaml.Node = loader.get_node()  # type: ignore[assignment]
        number += 1
        _refuse_doubles(node, set())
        value = loader.construct_document(node)
        if value is not None:
            yield Document(source, number, node, value)


def _refuse_doubles(node: yaml.Node, seen: set[int]) -> None:
    """Refuse a mapping that has a key twice: YAML would silently keep the last one."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_doubles(item, seen)
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if key.value in keys and isinstance(key, yaml.ScalarNode):
                raise ValueError(f"line {key.start_mark.line + 1}: {key.value!r} is given twice")
            if isinstance(key, yaml.ScalarNode):
                keys.add(key.value)
            _refuse_doubles(value, seen)


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    """Return the node of a mapping's key or of a sequence's item."""
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return node.value[step] if step < len(node.value) else None
    return None
