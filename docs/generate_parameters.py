"""Write docs/parameters.md, and config/ of some nodes, from the nodes' parameter tables: `make docs`."""

import textwrap
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

import yaml

from dynid_ros.nodes import module_of
from dynid_ros.nodes.shared.parameters import NodeParameter

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "parameters.md"
CONFIG = DOCS.parent / "config"

WRITTEN = (
    "external_torque",
    "flexible_joint_identification",
    "gravity_identification",
    "link_identification",
    "load_identification",
    "servo_identification",
    "torque_sensor_calibration",
)
"""Nodes whose parameter file says no more than their table."""

HEAD = """\
# Parameters of the nodes

Made by `make docs` from the tables in `dynid_ros/nodes`; do not edit. The file of each node says more of them.
A default is written as in such a file: `.nan` and `.inf` are numbers, `[.nan]`, `[0.0]` and `[""]` stand for *not
given*. A list per joint has one value for all joints, or one per joint in the model's order.

Parameters marked *live* may be changed with `ros2 param set` while the node runs; those marked *configure*
may be set, too, and count from the next `cleanup` and `configure` on; all others are read at the start. A value out
of range or of another type, or a name that does not exist, also in a parameter file, is refused with one line that
names it. What is *live* of `gravity_compensation` acts while the arm floats: the torque goes where it leads no faster
than `max_rate`.
Those that matter most are arguments of the launch files too (`ros2 launch dynid_ros identify.launch.py --show-args`);
all others are given in a file, `params_file:=mine.yaml`, by node as in config/*.yaml.
"""


def page() -> str:
    """The whole page."""
    names = nodes()
    contents = "\n".join(f"- [{name}](#{name})" for name in names)
    return "\n".join([HEAD, contents, "", "\n\n".join(section(name) for name in names), ""])


def nodes() -> list[str]:
    """Names of the nodes, each of which has a parameter file."""
    return sorted(path.stem for path in CONFIG.glob("*.yaml"))


def section(node: str) -> str:
    """Heading, what the node is, and its table."""
    module = import_module(module_of(node))
    first = " ".join((module.__doc__ or "").split("\n\n")[0].split())
    more = f"[config/{node}.yaml](../config/{node}.yaml)"
    return "\n".join([f"## {node}", "", f"{first} {more}", "", *table(module.PARAMETERS)])


def table(parameters: Sequence[NodeParameter]) -> Iterable[str]:
    """Rows of a Markdown table."""
    yield "| parameter | type | default | |"
    yield "|---|---|---|---|"
    for parameter in parameters:
        text = parameter.description.replace("|", "\\|")
        text += f"; {parameter.bounds}" * bool(parameter.bounds)
        live = " *live*" * parameter.adjustable + " *configure*" * parameter.configured
        yield f"| `{parameter.name}`{live} | {kind(parameter.default)} | `{written(parameter.default)}` | {text} |"


def kind(default: object) -> str:
    """Type in the words of ROS."""
    if isinstance(default, list):
        return f"list of {kind(default[0])}s"
    return {bool: "bool", int: "integer", float: "double", str: "string"}[type(default)]


def written(default: object) -> str:
    """The value as a parameter file holds it."""
    if isinstance(default, str):
        return f'"{default}"'
    if isinstance(default, list) and all(isinstance(item, str) for item in default):
        return "[" + ", ".join(map(written, default)) + "]"
    return yaml.safe_dump(default, default_flow_style=True, width=1000).removesuffix("...\n").strip()


def parameter_file(node: str) -> str:
    """The node's parameters with their defaults, each below what it means."""
    lines = [f"# Parameters of `ros2 run dynid_ros {node} --ros-args --params-file {node}.yaml`", "/**:"]
    lines.append("  ros__parameters:")
    for parameter in import_module(module_of(node)).PARAMETERS:
        live = f"; {parameter.bounds}" * bool(parameter.bounds)
        live += ". May be changed while the node runs" if parameter.adjustable else ""
        text = parameter.description.replace("nan:", ".nan:")
        lines += textwrap.wrap(
            f"{text}{live}",
            width=120,
            initial_indent="    # ",
            subsequent_indent="    # ",
            break_long_words=False,
        )
        lines.append(f"    {parameter.name}: {written(parameter.default)}")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    for name in WRITTEN:
        (CONFIG / f"{name}.yaml").write_text(parameter_file(name), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
