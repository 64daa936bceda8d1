"""Plain YAML from untrusted sources, without object tags, without multiplying aliases, without duplicate keys.

Values are built directly from the parser's events; a tree of nodes would take many times the memory.

Names of robots, links, joints and topics are quoted here too, because they come from untrusted files and are written
to shell scripts, programs and parameter files that people run.
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import yaml

from dynid_ros.errors import DynidError
from dynid_ros.files.bounded import read_text

REFUSED_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's control and format characters, halves of surrogate pairs, separators of lines and paragraphs."""
_NOT_IN_COMMENTS = re.compile(r"[^\w .,:;+/()='%@-]")


def require_name(name: object, what: str, error: type[DynidError]) -> str:
    """Return the name, if it is a text without control characters.

    Args:
        name: name to check.
        what: description of the named object and its file, for the message.
        error: class of the error to raise.

    Raises:
        DynidError: of the class `error`; the name is not a text, or has a control character such as a line break.
    """
    if not isinstance(name, str):
        raise error(f"{what} is named {name!r}; expected a text")
    for character in name:
        if unicodedata.category(character) in REFUSED_CATEGORIES:
            raise error(f"{what} is named {name!r}, with the control character {character!r}; remove it")
    return name


def comment_text(text: str) -> str:
    """Return the text for a comment of any language: characters that could end the comment become underscores."""
    return _NOT_IN_COMMENTS.sub("_", text)


def yaml_text(text: str) -> str:
    """Return the text as a quoted YAML scalar, which YAML never reads as a number or another type."""
    return json.dumps(text, ensure_ascii=False)


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of a CSV table, without its end; cells with commas or quotes are quoted."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


MAX_DEPTH = 100
MAX_ENTRIES = 1_000_000
"""Scalars and collections, each counted as often as aliases repeat it."""
MAX_SHOWN = 40
"""Characters of a value in a message."""
MERGE = "tag:yaml.org,2002:merge"
SCALARS = {
    f"tag:yaml.org,2002:{kind}": yaml.SafeLoader.yaml_constructors[f"tag:yaml.org,2002:{kind}"]
    for kind in ("null", "bool", "int", "float", "timestamp", "str")
}
COLLECTIONS = (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of libyaml, where PyYAML has it: it is ten times faster."""
_NO_VALUE = (ValueError, ArithmeticError, LookupError, AttributeError, TypeError)
"""Errors of PyYAML where a number, a date or a tag does not fit."""


def read_yaml(path: str | Path, largest: int) -> Any:
    """Return the content of a YAML file of at most `largest` bytes.

    Raises:
        OSError: the file cannot be read; the reason is in `strerror`.
        ValueError: as `parse_yaml`.
    """
    return parse_yaml(read_text(path, largest))


def parse_yaml(text: str) -> Any:
    """Return the content of a YAML text.

    Raises:
        ValueError: the text is not plain YAML; the message has the reason in one line.
    """
    loader = None
    try:
        loader = LOADER(text)
        return _Builder(loader).document()
    except (yaml.YAMLError, *_NO_VALUE) as error:
        where = getattr(error, "problem_mark", None)
        line = f"line {where.line + 1}: " if where is not None else ""
        raise ValueError(f"{line}{_reason(error)}") from error
    finally:
        if loader is not None:
            loader.dispose()


class _Builder:
    """Builds the value of a document from the events of a parser.

    Args:
        loader: gives events and resolves the tags of scalars.
    """

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._depth = 0
        self._entries = 0
        self._keys: dict[Hashable, Hashable] = {}
        self._anchors: dict[str, tuple[Any, int] | None] = {}

    def document(self) -> Any:
        """Return the value of the only document, None for an empty text."""
        events = self._loader
        events.get_event()  # the stream begins
        if events.check_event(yaml.StreamEndEvent):
            return None
        events.get_event()  # the document begins
        value = self._value(events.get_event())
        events.get_event()  # the document ends
        if not events.check_event(yaml.StreamEndEvent):
            raise _problem("expected a single document, but found another document", events.get_event())
        return value

    def _value(self, event: Any) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._entries
        self._count(1, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        value = self._scalar(event)[1] if isinstance(event, yaml.ScalarEvent) else self._collection(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._entries - before
        return value

    def _count(self, entries: int, event: yaml.Event) -> None:
        self._entries += entries
        if self._entries > MAX_ENTRIES:
            raise _problem(f"more than {MAX_ENTRIES} entries, aliases counted; write out what is meant", event)

    def _alias(self, event: yaml.AliasEvent) -> Any:
        if event.anchor not in self._anchors:
            raise _problem(f"found undefined alias '{event.anchor}'", event)
        anchor = self._anchors[event.anchor]
        if anchor is None:
            raise _problem("an alias of the collection that it is in; write it out", event)
        value, entries = anchor
        self._count(entries, event)
        return value

    def _scalar(self, event: yaml.ScalarEvent) -> tuple[str, Any]:
        """Return tag and value."""
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == MERGE:
            return tag, None
        if tag not in SCALARS:
            raise _problem(f"could not determine a constructor for the tag '{tag}'", event)
        try:
            value = SCALARS[tag](self._loader, yaml.ScalarNode(tag, event.value))
            if isinstance(value, int):
                float(value)
        except _NO_VALUE as error:
            kind = tag.rpartition(":")[2]
            raise _problem(f"'{event.value[:MAX_SHOWN]}' is no {kind}", event) from error
        return tag, value

    def _collection(self, event: yaml.CollectionStartEvent) -> Any:
        if event.tag not in COLLECTIONS:
            raise _problem(f"could not determine a constructor for the tag '{event.tag}'", event)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _problem(f"it is nested more than {MAX_DEPTH} levels deep", event)
        value = self._mapping() if isinstance(event, yaml.MappingStartEvent) else self._list()
        self._depth -= 1
        return value

    def _list(self) -> list[Any]:
        values = []
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            values.append(self._value(event))
        return values

    def _mapping(self) -> dict[Hashable, Any]:
        values: dict[Hashable, Any] = {}
        merged: dict[Hashable, Any] = {}
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _problem("a key is a list, a mapping or an alias", event)
            self._count(1, event)
            tag, key = self._scalar(event)
            value = self._value(self._loader.get_event())
            if tag == MERGE:
                merged = _merged(value, event) | merged
            elif key in values:
                raise _problem(f"key '{event.value[:MAX_SHOWN]}' comes twice", event)
            else:
                values[self._keys.setdefault(key, key)] = value
        return merged | values if merged else values


def _merged(value: Any, event: yaml.Event) -> dict[Hashable, Any]:
    """Return the entries that `<<` adds; of several mappings the first one has precedence."""
    mappings = value if isinstance(value, list) else [value]
    entries: dict[Hashable, Any] = {}
    for mapping in mappings:
        if not isinstance(mapping, dict):
            raise _problem("expected a mapping or a list of mappings for merging", event)
        entries = mapping | entries
    return entries


def _problem(text: str, event: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, text, event.start_mark)


def _reason(error: Exception) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or error
    return " ".join(str(problem).split()) or type(error).__name__
