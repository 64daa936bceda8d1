"""Test that a node does not start with an unknown name or a wrong type in its params file."""

from pathlib import Path

import pytest
import yaml
from helpers.node_process import NodeProcess

pytest.importorskip("mujoco")

CONFIG = Path(__file__).resolve().parents[2] / "config"
NODES = ["excitation", "gravity_compensation", "link_identification", "recorder", "simulator"]
"""Test one node of each kind, because all nodes declare their parameters by one function."""


def read_error_line(node, folder, **parameters):
    """Return the one line of output of a node with this params file."""
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump({f"/**/{node}": {"ros__parameters": parameters}}))
    with NodeProcess(node, None, "--params-file", str(path)) as process:
        code = process.wait()
        output = process.output
    assert code == 2, output
    (line,) = output.splitlines()
    return line


@pytest.mark.usefixtures("domain")
@pytest.mark.parametrize("node", NODES)
def test_unknown_name_and_wrong_type_give_one_error_line(node, tmp_path):
    (section,) = yaml.safe_load((CONFIG / f"{node}.yaml").read_text(encoding="utf-8")).values()
    name, value = next(iter(section["ros__parameters"].items()))
    assert read_error_line(node, tmp_path, **{f"{name}x": value}) == (
        f"error: Parameter '{name}x' of node '{node}' does not exist; did you mean {name}?"
    )
    wrong = 3.5 if isinstance(value, str) else "much"
    line = read_error_line(node, tmp_path, **{name: wrong})
    assert line.startswith(f"error: Parameter '{name}' of node '{node}' is ")
    assert "; expected " in line
