"""The `<inertial>` elements in the text of a URDF, replaced without a touch on anything else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from xml.parsers import expat

LINK, INERTIAL = ["robot", "link"], ["robot", "link", "inertial"]
_START_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
_END_TAG = re.compile(rb"</[^>]*>")


def replace_inertials(text: str, elements: Mapping[str, Sequence[str]]) -> str:
    """Text of a URDF with other `<inertial>` elements for some links; all other bytes stay.

    A parser that builds a tree would lose comments and formatting, so the elements are found in the text and only they
    are cut out.

    Args:
        text: a URDF that parses.
        elements: by link, the children of its new `<inertial>`; a link without one gets it.

    """
    data = text.encode()
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    places = _Places(data)
    pieces, done = [], 0
    for start, stop, link in sorted(places.of(elements)):
        pieces += [data[done:start], _replacement(data, start, stop, elements[link], newline)]
        done = stop
    return b"".join([*pieces, data[done:]]).decode()


class _Places:
    """Byte ranges of the start tags of links and of their first `<inertial>`."""

    def __init__(self, data: bytes):
        self.data = data
        self.links: dict[str, tuple[int, int]] = {}
        self.inertials: dict[str, tuple[int, int]] = {}
        self._path: list[str] = []
        self._link, self._inertial = "", -1
        # The text is UTF-8 by now, whatever its declaration says.
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.Parse(data, True)

    def of(self, links: Mapping[str, object]) -> Iterator[tuple[int, int, str]]:
        """Where each of these links is to be cut: its `<inertial>`, or its start tag where it has none."""
        for link in links:
            yield (*self.inertials.get(link, self.links[link]), link)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        index = self._parser.CurrentByteIndex
        if self._path == LINK:
            self._link = attributes["name"]
            self.links[self._link] = (index, _end_of(_START_TAG, self.data, index))
        elif self._path == INERTIAL and self._link not in self.inertials:
            self._inertial = index

    def _end(self, tag: str) -> None:  # noqa: ARG002 - expat gives it
        if self._path == INERTIAL and self._link not in self.inertials:
            # Of <inertial/> the parser tells the end, of <inertial>...</inertial> the start of the end tag.
            index = self._parser.CurrentByteIndex
            empty = _end_of(_START_TAG, self.data, self._inertial) == index
            self.inertials[self._link] = (self._inertial, index if empty else _end_of(_END_TAG, self.data, index))
        self._path.pop()


def _end_of(tag: re.Pattern[bytes], data: bytes, index: int) -> int:
    found = tag.match(data, index)
    return found.end() if found else index


def _replacement(data: bytes, start: int, stop: int, children: Sequence[str], newline: bytes) -> bytes:
    old = data[start:stop]
    line = data[data.rfind(b"\n", 0, start) + 1 : start]
    # An element that does not stand first in its line shares the line with others, so the new one does as well.
    margin = newline + line if not line.strip() else b""
    step = (b"\t" if b"\t" in line else b"  ") if margin else b""
    if old.startswith(b"<inertial"):
        return _element(children, margin, step)
    tag = old[:-2].rstrip() + b">" if old.endswith(b"/>") else old
    end = margin + b"</link>" if old.endswith(b"/>") else b""
    return tag + margin + step + _element(children, margin + step if margin else b"", step) + end


def _element(children: Sequence[str], margin: bytes, step: bytes) -> bytes:
    inner = b"".join(margin + step + child.encode() for child in children)
    return b"<inertial>" + inner + margin + b"</inertial>"
