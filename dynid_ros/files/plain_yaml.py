"""Plain YAML from anybody: no tags that make objects, no aliases that multiply, no key twice."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from dynid_ros.files.bounded import read_text

DEEPEST = 100
MOST_NODES = 1_000_000
"""Scalars and collections, each counted as often as aliases repeat it."""
_NO_VALUE = (ValueError, ArithmeticError, LookupError, AttributeError, TypeError)
"""What PyYAML lets out where a number, a date or a tag does not fit."""


def read_yaml(path: str | Path, largest: int) -> Any:
    """Content of a YAML file of at most `largest` bytes.

    Raises:
        OSError: it cannot be read; `strerror` says why.
        ValueError: as `parse_yaml`.
    """
    return parse_yaml(read_text(path, largest))


def parse_yaml(text: str) -> Any:
    """Content of a YAML text.

    Raises:
        ValueError: it is no plain YAML; the message says why, in one line.
    """
    loader = None
    try:
        loader = _Loader(text)
        return loader.get_single_data()
    except (yaml.YAMLError, *_NO_VALUE) as error:
        where = getattr(error, "problem_mark", None)
        line = f"line {where.line + 1}: " if where is not None else ""
        raise ValueError(f"{line}{_reason(error)}") from error
    finally:
        if loader is not None:
            loader.dispose()


class _Loader(yaml.SafeLoader):
    depth = 0

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None:
            _require_small(node)
        return node

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.YAMLError(f"it is nested more than {DEEPEST} levels deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            if isinstance(value, int):
                float(value)
            return value
        except _NO_VALUE as error:
            kind = node.tag.rpartition(":")[2]
            problem = f"'{str(node.value)[:40]}' is no {kind}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys: set[tuple[str, object]] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key is a list or mapping", key.start_mark)
            name = (key.tag, key.value)
            if name in keys and not key.tag.endswith(":merge"):
                raise yaml.constructor.ConstructorError(None, None, f"key '{key.value}' comes twice", key.start_mark)
            keys.add(name)
        return super().construct_mapping(node, deep)


def _require_small(root: yaml.Node) -> None:
    """Refuse aliases of what they are in, and more nodes than a file of numbers can have.

    Only such documents can be printed, copied and compared in the time that their size promises.
    """
    counts: dict[yaml.Node, int] = {}
    open_nodes: set[yaml.Node] = set()

    def count(node: yaml.Node) -> int:
        if isinstance(node, yaml.ScalarNode):
            return 1
        if node in open_nodes:
            raise yaml.YAMLError("an alias of the collection that it is in; write it out")
        if node not in counts:
            open_nodes.add(node)
            pairs = isinstance(node, yaml.MappingNode)
            children = [child for pair in node.value for child in pair] if pairs else node.value
            counts[node] = 1 + sum(map(count, children))
            open_nodes.remove(node)
        if counts[node] > MOST_NODES:
            raise yaml.YAMLError(f"more than {MOST_NODES} entries, aliases counted; write out what is meant")
        return counts[node]

    count(root)


def _reason(error: Exception) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or error
    return " ".join(str(problem).split()) or type(error).__name__
