"""Test that public names and signatures agree with `public_api.txt`, which `python test/test_public_api.py` writes."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

FILE = Path(__file__).with_name("public_api.txt")
FACES = (
    *("collision", "control", "errors", "excitation", "files", "identification", "identification.flexible"),
    *("information", "mocap", "model", "recording", "report", "signals", "simulation", "trajectories"),
)
MODULES = {
    "identified.identified_file": ("load_identified",),
    "identified.links": ("LinkModel", "link_model"),
    "checks.all_checks": ("check",),
}
"""Public names of the documentation and the examples outside the packages."""


def public_names() -> Iterator[tuple[str, object]]:
    for face in FACES:
        module = import_module(f"dynid_ros.{face}")
        for name in getattr(module, "__all__", None) or own_names(module):
            yield f"{face}.{name}", getattr(module, name)
    for place, names in MODULES.items():
        for name in names:
            yield f"{place}.{name}", getattr(import_module(f"dynid_ros.{place}"), name)


def own_names(module) -> list[str]:
    return [
        name
        for name, member in vars(module).items()
        if not name.startswith("_") and getattr(member, "__module__", None) == module.__name__
    ]


def parameters(function) -> str:
    """Return parameter names, with `=…` for a default."""
    words = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in ("self", "cls"):
            stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
            begins_keywords = parameter.kind is parameter.KEYWORD_ONLY and not any("*" in word for word in words)
            keyword = "*, " if begins_keywords else ""
            words.append(f"{keyword}{stars}{parameter.name}" + ("" if parameter.default is parameter.empty else "=…"))
    return f"({', '.join(words)})"


def lines() -> Iterator[str]:
    for name, member in sorted(public_names()):
        if not inspect.isclass(member):
            yield name + (parameters(member) if inspect.isroutine(member) else "")
        elif issubclass(member, Exception):
            yield f"{name}({member.__mro__[1].__name__})"
        else:
            yield name + ("" if member.__init__ is object.__init__ else parameters(member))
            for key in sorted(dir(member)):
                inner = inspect.getattr_static(member, key)
                function = getattr(inner, "__func__", inner)
                if not key.startswith("_") and getattr(function, "__module__", "dynid_ros").startswith("dynid_ros"):
                    yield f"{name}.{key}" + (parameters(function) if inspect.isfunction(function) else "")


def test_public_names_and_signatures():
    assert list(lines()) == FILE.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
