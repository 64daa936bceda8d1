"""One fault of a recording."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """What is wrong and what to do about it.

    Attributes:
        severity: "error": nothing should be fitted to this; "warning": look at it first.
        where: the file, and the joint or topic in it.
        message: what was found.
        fix: the way out.
        kind: name of this kind of fault, as in docs/checks.md.

    """

    severity: Literal["error", "warning"]
    where: str
    message: str
    fix: str
    kind: str = "other"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.fix}"
