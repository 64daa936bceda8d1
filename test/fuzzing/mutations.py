"""Mutations of valid documents: typing errors, damaged files, output of other programs and attacks."""

# ruff: noqa: E501 - tables of inputs

import copy
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

NUMBERS = [
    b"nan", b"NaN", b".nan", b"inf", b"-inf", b".inf", b"1e308", b"-1e308", b"1e999", b"5e-324", b"1e-320", b"0", b"-0.0",
    b"-1", b"1e6", b"1e17", b"9" * 400, b"9" * 5000, b"0x1F", b"1_000", b"1,5", b"true", b"null", b"", b"abc", b"1 2",
    "٣".encode(), b"18446744073709551616", b"-9223372036854775809", b"1.7976931348623157e308", b"3.5e4",
]  # fmt: skip
TEXTS = [
    b"\0", b"\n", b"\r", b"\x1b[2J", "Δ軸é".encode(), "\u202eevil".encode(), "\U0001f916".encode(), b"\xff\xfe", b"\xed\xa0\x80",
    b'"', b"'", b"<", b">", b"&", b"&lt;", b"&#0;", b"&#10;", b"&amp;" * 50, b"<!DOCTYPE a>", b"<!--", b"]]>", b"<a>" * 300,
    b"[" * 300, b"{a: " * 200, b"- " * 300, b"a" * 20_000, b",", b";", b"\t", b":", b"#", b"*a", b"&a ", b"!!python/name:os.system ",
    b"!!python/object/apply:os.system [exit]", b"!!int ", b"!!bool ", b"!!timestamp ", b"---\n", b"...\n", b"%YAML 2.0\n",
    b"../../etc/passwd", b"package://../..", b"%n%s", b"2020-13-45", b"? ", b"|", b"\\", b"=", b" ", b"\xef\xbb\xbf",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1e-12, 1e6, 1e17, 10**400,
    "", "abc", "nan", "1.0", "Δ軸", "a" * 3000, "\x1b[2J", "\n", [], {}, [[]], [0.0], [1.0, 2.0, 3.0], [math.nan] * 3, [None] * 3,
    ["a"], {"a": 1}, {"": None}, [0.0] * 10, [1e308] * 6, {1: 2}, {None: 1}, "base_link", "link_3", "joint_1", [True] * 3,
    [[1.0, 2.0, 3.0]], -5.0, 0.001, 1000.0, 3,
]  # fmt: skip
TOKEN = re.compile(rb"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<word>[A-Za-z_][A-Za-z_0-9]*)")
PLAN = st.binary(min_size=8, max_size=8)
"""Random bytes that select the seed and all mutations; separate draws take longer than reading a file."""
Text = Callable[[bytes, int, int], bytes]


def _scale_index(place: int, size: int) -> int:
    return place * size // 65_536


def _replace_token(kind: str, choices: Sequence[bytes] | None) -> Text:
    def mutate(text: bytes, place: int, other: int) -> bytes:
        tokens = [match for match in TOKEN.finditer(text) if match.lastgroup == kind]
        if not tokens:
            return text
        token = tokens[_scale_index(place, len(tokens))]
        new = choices[other % len(choices)] if choices else tokens[_scale_index(other, len(tokens))][0]
        return text[: token.start()] + new + text[token.end() :]

    return mutate


def _flip_bit(text: bytes, place: int, other: int) -> bytes:
    if not text:
        return text
    i = _scale_index(place, len(text))
    return text[:i] + bytes([text[i] ^ (1 << other % 8)]) + text[i + 1 :]


def _insert_text(text: bytes, place: int, other: int) -> bytes:
    i = _scale_index(place, len(text) + 1)
    return text[:i] + TEXTS[other % len(TEXTS)] + text[i:]


def _cut_bytes(text: bytes, place: int, other: int) -> bytes:
    start, length = _scale_index(place, len(text) + 1), 1 + other % 64
    return text[:start] + text[start + length :]


def _truncate(text: bytes, place: int, _other: int) -> bytes:
    return text[: _scale_index(place, len(text) + 1)]


def _change_lines(change: Callable[[list[bytes], int, int], None]) -> Text:
    def mutate(text: bytes, place: int, other: int) -> bytes:
        lines = text.split(b"\n")
        change(lines, _scale_index(place, len(lines)), other)
        return b"\n".join(lines)

    return mutate


def _delete_line(lines: list[bytes], i: int, other: int) -> None:
    del lines[i : i + 1 + other % 3]


def _repeat_line(lines: list[bytes], i: int, other: int) -> None:
    lines[i:i] = [lines[i]] * (1, 2, 300)[other % 3]


def _move_line(lines: list[bytes], i: int, other: int) -> None:
    lines.insert(_scale_index(other, len(lines)), lines.pop(i))


def _lengthen_line(lines: list[bytes], i: int, other: int) -> None:
    lines[i] = lines[i] * (2, 500)[other % 2]


TEXT_MUTATIONS: dict[str, Text] = {
    "number": _replace_token("number", NUMBERS),
    "other number": _replace_token("number", None),
    "word": _replace_token("word", None),
    "no word": _replace_token("word", TEXTS),
    "bit": _flip_bit,
    "insert": _insert_text,
    "cut": _cut_bytes,
    "truncate": _truncate,
    "delete line": _change_lines(_delete_line),
    "double line": _change_lines(_repeat_line),
    "move line": _change_lines(_move_line),
    "long line": _change_lines(_lengthen_line),
}
DOCUMENT_MUTATIONS = ("value", "value", "value", "scale", "remove", "repeat", "swap", "rename")
BINARY_MUTATIONS = ("bit", "bit", "bit", "insert", "cut", "truncate")


def texts(
    seeds: Sequence[bytes], kinds: Sequence[str] = tuple(TEXT_MUTATIONS), most: int = 4
) -> st.SearchStrategy[bytes]:
    """Return a strategy of seeds after up to `most` mutations of these kinds."""
    return PLAN.map(lambda plan: mutate_text(seeds[plan[0] % len(seeds)], _list_steps(plan, kinds, most)))


def _list_steps(plan: bytes, kinds: Sequence[str], most: int) -> list[tuple[str, int, int]]:
    return [choose_mutation(int.from_bytes(plan, "big") + (i << 16), kinds) for i in range(plan[1] % (most + 1))]


def choose_mutation(number: int, kinds: Sequence[str]) -> tuple[str, int, int]:
    """Return the kind of a mutation and two places, 16-bit numbers spread over the whole range."""
    spread = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
    return kinds[(spread >> 48) % len(kinds)], spread >> 32 & 0xFFFF, spread >> 16 & 0xFFFF


def mutate_text(text: bytes, steps: list[tuple[str, int, int]]) -> bytes:
    """Return the text after the mutations."""
    for kind, place, other in steps:
        text = TEXT_MUTATIONS[kind](text, place, other)[:300_000]
    return text


def documents(seeds: Sequence[Any], most: int = 3) -> st.SearchStrategy[Any]:
    """Return a strategy of documents with up to `most` values replaced, removed, repeated or swapped."""
    return PLAN.map(
        lambda plan: _mutate_document(seeds[plan[0] % len(seeds)], _list_steps(plan, DOCUMENT_MUTATIONS, most))
    )


def _is_scalable(value: Any) -> bool:
    """Return whether the value is a number within the range of a float."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _mutate_document(seed: Any, steps: list[tuple[str, int, int]]) -> Any:
    holder = [copy.deepcopy(seed)]
    for kind, place, other in steps:
        places = _list_entries(holder)
        parent, key = places[_scale_index(place, len(places))]
        if kind == "value":
            parent[key] = copy.deepcopy(VALUES[other % len(VALUES)])
        elif kind == "scale" and _is_scalable(parent[key]):
            parent[key] = float(parent[key]) * (-1.0, 1e3, 1e-3, 1e12, 0.0)[other % 5]
        elif kind == "remove" and parent is not holder:
            del parent[key]
        elif kind == "repeat" and isinstance(parent, list) and parent is not holder:
            parent[key:key] = [copy.deepcopy(parent[key])] * (1, 3, 200)[other % 3]
        elif kind == "swap":
            source, name = places[_scale_index(other, len(places))]
            parent[key] = copy.deepcopy(source[name])
        elif kind == "rename" and isinstance(parent, dict):
            value = parent.pop(key)
            parent[("x", "", "Δ", 3, None, "mass", True)[other % 7]] = value
    return holder[0]


def _list_entries(holder: list) -> list[tuple[Any, Any]]:
    """Return the container and key of each value in the document."""
    entries: list[tuple[Any, Any]] = []
    waiting: list[Any] = [holder]
    while waiting:
        container = waiting.pop()
        for key in list(container) if isinstance(container, dict) else range(len(container)):
            entries.append((container, key))
            if isinstance(container[key], (dict, list)):
                waiting.append(container[key])
    return entries
