"""Golden record of the public names: what each package face offers, and the signatures of what is promised."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from functools import cached_property
from importlib import import_module
from types import ModuleType

from benchmarks.golden_runs import write_part

FACES = (
    "collision",
    "control",
    "errors",
    "excitation",
    "files",
    "identification",
    "identification.flexible",
    "information",
    "mocap",
    "model",
    "recording",
    "report",
    "signals",
    "simulation",
    "trajectories",
)
"""Modules of `dynid_ros` that are imported from; all public names of each are recorded."""

PROMISED = {
    "errors": (),
    "excitation": ("FourierExcitation",),
    "identification": (),
    "identification.flexible": ("FlexibleJointIdentification", "TorsionIdentification", "mocap_links"),
    "identification.flexible.mocap_links": ("mocap_links",),
    "jobs.judging": ("judge",),
    "jobs.surroundings": ("surroundings",),
    "mocap": ("SingleJoint", "joint_angle"),
    "model": (),
    "recording": (),
    "recording.checks": ("check",),
    "share": ("share_path",),
    "signals": ("align_clocks",),
    "trajectories": ("MotionLimits", "Trajectory", "Workspace"),
}
"""Names whose signatures are recorded: those of the design, the documentation and the examples; (): all of a face."""

MOVED = {
    "identification.flexible.mocap_links": "mocap.recorded_links",
    "jobs.surroundings": "jobs.experiments",
    "recording.checks": "checks",
    "share": "files.share",
}
"""Modules that the record knows by an earlier path."""


def names() -> dict:
    """Return faces, signatures of what is promised, and of the classes that these return."""
    faces = {f"dynid_ros.{face}": _public(import_module(f"dynid_ros.{face}")) for face in FACES}
    promised, waiting = {}, []
    for room, chosen in PROMISED.items():
        module = import_module(f"dynid_ros.{MOVED.get(room, room)}")
        for name in chosen or _public(module):
            thing = getattr(module, name)
            promised[f"dynid_ros.{room}.{name}"] = describe(thing)
            waiting += _returned(thing)
    of_faces = {name for face in faces.values() for name in face}
    returned = {cls.__name__: describe(cls) for cls in waiting if cls.__name__ not in of_faces}
    for described in (*returned.values(), *(entry for path, entry in promised.items() if path.endswith("Result"))):
        if isinstance(described, dict):
            described.pop("()", None)  # only this package makes one
    return {"faces": faces, "promised": promised, "returned by them": returned}


def _public(module: ModuleType) -> list[str]:
    """Return the public names that a module has for others."""
    listed = getattr(module, "__all__", None)
    own = [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__
    ]
    return sorted(own if listed is None else listed)


def describe(thing: object) -> object:
    """Return the signature of a function; of a class also what its objects have."""
    if not inspect.isclass(thing):
        return _signature(thing) if callable(thing) else repr(thing)
    if issubclass(thing, BaseException):
        return f"is a {', '.join(base.__name__ for base in thing.__mro__[1:-2])}"
    described: dict[str, str] = {"()": _signature(thing)}
    for cls in reversed([cls for cls in thing.__mro__ if cls.__module__.startswith("dynid_ros")]):
        described |= dict.fromkeys(_set_in_init(cls), "attribute")
        described |= {name: "attribute" for name in vars(cls).get("__annotations__", {}) if name[0] != "_"}
        described |= {name: _member(member) for name, member in vars(cls).items() if name[0] != "_"}
    fields = dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ()
    return described | {field.name: "attribute" for field in fields if field.name[0] != "_"}


def _member(member: object) -> str:
    """Return what a class has under a name."""
    if isinstance(member, (staticmethod, classmethod)):
        return _signature(member.__func__)
    if inspect.isfunction(member):
        return _signature(member)
    return "attribute"  # stored, a property or a constant: who reads it need not know


def _set_in_init(cls: type) -> list[str]:
    """Return public attributes that `__init__` and `__post_init__` set."""
    texts = []
    for name in ("__init__", "__post_init__"):
        try:
            texts.append(inspect.getsource(vars(cls)[name]))
        except (KeyError, OSError, TypeError):
            continue
    return re.findall(r"\bself\.([a-z]\w*)(?:: [^=\n]+)? = ", "\n".join(texts))


def _signature(thing: object) -> str:
    """Return names and defaults of the parameters."""
    try:
        parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(…)"
    words, star = [], False
    for parameter in parameters:
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            words.append("*")
        star |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        words.append(f"{stars}{parameter.name}{default}")
    return f"({', '.join(words)})"


def _default(value: object) -> str:
    """Return a default as it is written; `…` for an object that shows no more than its address."""
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__name__
    text = repr(value)
    return "…" if " at 0x" in text or text == "<factory>" else text


_HELD = {property: "fget", cached_property: "func", classmethod: "__func__", staticmethod: "__func__"}
"""Where a member of a class holds its function."""


def _returned(thing: object) -> list[type]:
    """Return classes of this package that a function returns, or the public methods and properties of a class."""
    members = [thing]
    if inspect.isclass(thing):
        found = [member for cls in thing.__mro__[:-1] for name, member in vars(cls).items() if name[0] != "_"]
        members = [getattr(member, _HELD.get(type(member), ""), member) for member in found]
    classes = []
    for member in filter(inspect.isfunction, members):
        try:
            hint = typing.get_type_hints(member).get("return")
        except (NameError, TypeError):
            continue
        classes += [part for part in (hint, *typing.get_args(hint)) if inspect.isclass(part)]
    return [cls for cls in classes if cls.__module__.startswith("dynid_ros")]


if __name__ == "__main__":
    write_part(names())
