"""Golden record of what an installation brings: scripts, files, arguments of launch files, values of config files."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import yaml

from benchmarks.golden_runs import plain, write_part

ROOT = Path(__file__).resolve().parents[1]
INSTALLERS = {"colcon": ("egg_info", "build", "install"), "wheel": ("bdist_wheel",)}
"""Words that setup.py is called with."""


def installed() -> dict:
    """Return what setup.py installs, and what launch and config files hold."""
    return {
        "setup": {name: setup(*words) for name, words in INSTALLERS.items()},
        "launch": {path.name: launch_file(path) for path in sorted((ROOT / "launch").glob("*.launch.py"))},
        "config": {
            str(path.relative_to(ROOT)): plain(yaml.safe_load(path.read_text(encoding="utf-8")))
            for path in sorted((ROOT / "config").rglob("*.yaml"))
        },
    }


def setup(*words: str) -> dict:
    """Return scripts, data files and requirements that setup.py names when it is called with these words."""
    taken: dict = {}
    stand_in = ModuleType("setuptools")
    vars(stand_in).update(setup=lambda **given: taken.update(given), find_packages=lambda **_: [])
    with _in_place_of({"setuptools": stand_in}), _arguments("setup.py", *words):
        runpy.run_path(str(ROOT / "setup.py"))
    return {
        "console_scripts": {
            script: "command" if script == "dynid" else "nodes"
            for script, target in (re.split(r"\s*=\s*", line) for line in taken["entry_points"]["console_scripts"])
        },
        "data_files": {folder: sorted(Path(file).name for file in files) for folder, files in taken["data_files"]},
        "requires": sorted(taken["install_requires"]),
        "extras": {name: sorted(needs) for name, needs in taken["extras_require"].items()},
        "python": taken["python_requires"],
    }


def launch_file(path: Path) -> dict:
    """Return the arguments of a launch file, and which nodes it starts with which parameters, by choice of argument."""
    with _in_place_of(_launch_modules()):
        described = runpy.run_path(str(path))["generate_launch_description"]()
        declared = [entity for entity in described.entities if entity.made == "DeclareLaunchArgument"]
        defaults = {entity.given[0]: entity.named.get("default_value", "") for entity in declared}
        choices = {entity.given[0]: entity.named["choices"] for entity in declared if "choices" in entity.named}
        started = {"by default": _started(described.entities, defaults)}
        for name, values in choices.items():
            if name in ("use_sim_time", "log_level"):
                continue
            for value in values[1:]:
                started[f"{name}:={value}"] = _started(described.entities, defaults | {name: value})
    return {
        "arguments": {
            name: f'default "{default}"' + (f"; one of {', '.join(choices[name])}" if name in choices else "")
            for name, default in defaults.items()
        },
        "starts": started,
    }


def _started(entities: list, configurations: Mapping[str, str]) -> list[str]:
    """Return the nodes that a launch description starts, a line each."""
    context = SimpleNamespace(launch_configurations=dict(configurations))
    nodes = []
    for entity in entities:
        if entity.made == "OpaqueFunction" and entity.named["function"].__name__ != "check":
            nodes += entity.named["function"](context) or []
    return [_line(node.named) for node in nodes]


def _line(node: Mapping[str, Any]) -> str:
    """Return package, executable and parameters of a node; of a file in this package its place there."""
    words = [f"{node['package']} {node['executable']}", *node.get("arguments", ())]
    for entry in node.get("parameters", ()):
        if isinstance(entry, Mapping):
            words += [f"{name}:={getattr(value, 'given', [value])[0]}" for name, value in sorted(entry.items())]
        else:
            words.append(str(entry))
    return " ".join(word.replace(f"{ROOT}/", "").replace(f"{Path.cwd()}/", "") for word in words)


class _Made:
    """Stands for anything that `launch` and `launch_ros` make: keeps what it was given."""

    @property
    def name(self) -> Any:
        """Name of an argument."""
        return self.given[0]

    def __init__(self, *given: Any, **named: Any) -> None:
        self.made, self.given, self.named = type(self).__name__, list(given), named

    @property
    def entities(self) -> list:
        """Actions of a launch description."""
        return self.given[0]


class _LaunchModule(ModuleType):
    """A module of ROS 2 launch, which need not be installed; all its names make `_Made`."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Made,), {})


def _launch_modules() -> dict[str, ModuleType]:
    rooms = ("actions", "conditions", "substitutions", "event_handlers", "events", "events.process")
    names = ("launch", *(f"launch.{name}" for name in rooms))
    ros = ("launch_ros", *(f"launch_ros.{name}" for name in ("actions", "parameter_descriptions", "descriptions")))
    return {name: _LaunchModule(name) for name in (*names, *ros)}


@contextmanager
def _in_place_of(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """Have these modules imported meanwhile."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


@contextmanager
def _arguments(*words: str) -> Iterator[None]:
    before = sys.argv
    sys.argv = list(words)
    try:
        yield
    finally:
        sys.argv = before


if __name__ == "__main__":
    write_part(installed())
