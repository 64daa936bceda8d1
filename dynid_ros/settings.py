"""Declaration of a setting with type, default, unit, range and help, the source for options and parameters.

A setting is a field of the dataclass that uses it. `dynid` makes options from settings (`commands/options`), nodes make
parameters (`nodes/shared/parameters`), and these give `config/*.yaml` and `docs/parameters.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dynid_ros.errors import DynidError

KEY = "setting"
PART = "part"


@dataclass(frozen=True)
class Setting:
    """Declaration of one setting.

    Attributes:
        name: of the field.
        default: None means "chosen by the program"; a tuple without parts is a list of texts, or of numbers: one
            for all joints, or one per joint.
        help: description, without unit, choices and default.
        unit: of a number.
        choices: allowed texts; an empty default is allowed too.
        least, above: smallest number, and the number that must be exceeded; None: no bound.
        symbol: placeholder for the value in the help of a command.
        parts: names of the components of a value: numbers, or texts if the default is an empty tuple.
            read: function from a text to the value, for settings that are not texts or numbers; None: the text is the
            value.
        off: help of the option that switches off a default.
        offered: whether commands and nodes have the setting; else it is for programs only.
    """

    name: str
    default: Any
    help: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    least: float | None = None
    above: float | None = None
    symbol: str = ""
    parts: tuple[str, ...] = ()
    read: Callable[[str], Any] | None = None
    offered: bool = True
    off: str = ""

    @property
    def is_number(self) -> bool:
        """Whether its value is a float, or None."""
        if self.default is None:
            return not self.parts
        return isinstance(self.default, (int, float)) and not isinstance(self.default, bool)

    @property
    def is_texts(self) -> bool:
        """Whether its value is a list of texts, with commas between where it is one text, or of tuples of texts."""
        return isinstance(self.default, tuple) and not (self.is_numbers or (self.parts and self.default))

    @property
    def is_numbers(self) -> bool:
        """Whether its value is a list of numbers, of any length."""
        return isinstance(self.default, tuple) and not self.parts and isinstance((*self.default, "")[0], float)

    @property
    def description(self) -> str:
        """Help with the unit and the choices."""
        what, mark, otherwise = self.help.partition("; default:")
        return what + (f", {self.unit}" if self.unit else "") + mark + otherwise

    def problem(self, value: Any) -> str:
        """Return the reason why a value is invalid; empty if it is valid."""
        if self.read is not None:
            return ""
        if self.choices:
            known = value in self.choices or value == self.default
            return "" if known else f"{self.name} is '{value}'; expected one of {', '.join(self.choices)}"
        if not self.is_number or (value is None and self.default is None):
            return ""
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if number and (self.above is None or value > self.above) and (self.least is None or value >= self.least):
            return ""
        bound = f" above {self.above:g}" if self.above is not None else ""
        bound = f" of {self.least:g} or more" if self.least is not None else bound
        return f"{self.name} is {value!r}; expected a {'' if bound else 'finite '}number{bound}"


def setting(default: Any, text: str, /, *, choices: Iterable[str] = (), **more: Any) -> Any:
    """Return a dataclass field that is a setting, from its default, its help and other attributes of `Setting`."""
    return field(default=default, metadata={KEY: Setting("", default, text, choices=tuple(choices), **more)})


def part(owner: type) -> Any:
    """Return a dataclass field that holds an object of another dataclass with settings."""
    return field(default_factory=owner, metadata={PART: owner})


def settings_of(owner: Any) -> tuple[Setting, ...]:
    """Return the settings of a dataclass that commands and nodes offer, in their order, those of its parts last."""
    own = tuple(each for each in _declared(owner) if each.offered)
    return own + tuple(each for inner in _parts(owner).values() for each in settings_of(inner))


def made(owner: type, values: Mapping[str, Any], *arguments: Any) -> Any:
    """Return an object of the dataclass with its parts; `values` are those of `settings_of`, by name."""
    parts = {name: made(inner, values) for name, inner in _parts(owner).items()}
    own = {each.name: values[each.name] for each in _declared(owner) if each.offered}
    return owner(*arguments, **own, **parts)


def check(owner: Any, error: type[DynidError]) -> None:
    """Refuse values that a declaration forbids; for `__post_init__`.

    Raises:
        error: names the setting, its value and the expected value.
    """
    for each in _declared(owner):
        if problem := each.problem(getattr(owner, each.name)):
            raise error(problem)


def values_of(settings: Iterable[Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments for the dataclass from the values of a command or a node, by name."""
    return {each.name: _value(each, given[each.name]) for each in settings}


def _value(of: Setting, given: Any) -> Any:
    if of.is_texts:
        return tuple(each for each in (given.split(",") if isinstance(given, str) else given) if each)
    return given if of.read is None or not isinstance(given, str) else of.read(given)


def _declared(owner: Any) -> Iterable[Setting]:
    for each in fields(owner):
        if KEY in each.metadata:
            known: Setting = each.metadata[KEY]
            yield Setting(**(vars(known) | {"name": each.name}))


def _parts(owner: Any) -> dict[str, type]:
    return {each.name: each.metadata[PART] for each in fields(owner) if PART in each.metadata}
