"""Validation and quoting of the names of robots, links, joints, frames and topics.

Such names come from untrusted files and are written to shell scripts, programs and parameter files that people run.
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable

from dynid_ros.errors import DynidError

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
