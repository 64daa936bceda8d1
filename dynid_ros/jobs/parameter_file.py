"""Parameter file of the launch files, from answers that `dynid check` and `dynid excite` already have."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dynid_ros.errors import DynidError
from dynid_ros.files import MEGABYTE, read_yaml, write_atomically

EVERY_NODE = "/**"
NODE_PARAMETERS = "ros__parameters"
PARAMETER_FILE_HEAD = "# Parameters of this arm for the launch files of dynid_ros (params_file), written by dynid\n"


def robot_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the nodes that describe the arm as the options of a command do; None: not given."""
    held = ",".join(options.hold)
    return {
        "base_link": options.base,
        "tip_link": options.tip,
        "srdf_file": options.srdf,
        "group": options.group,
        "held_joints": held or None,
        "gravity": options.gravity,
        "payload": list(options.payload) or None,
    }


def update_parameter_file(path: Path, values: Mapping[str, Any], section: str = EVERY_NODE) -> Path:
    """Write parameters of nodes into a file, in addition to the parameters that it has; None is left out.

    Args:
        path: ROS parameter file; it may be missing.
        values: value by the name of the parameter.
        section: name of the nodes, as "/**/excitation".

    Raises:
        DynidError: the file is no parameter file, or has comments that would be lost.
    """
    content: dict[str, Any] = {}
    if path.exists():
        content = _read(path)
    given = {name: _plain(value) for name, value in values.items() if value is not None}
    content.setdefault(section, {}).setdefault(NODE_PARAMETERS, {}).update(given)
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    return write_atomically(path, PARAMETER_FILE_HEAD + text)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = read_yaml(path, MEGABYTE)
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DynidError(f"{path}: {getattr(error, 'strerror', None) or error}; give another --parameters") from error
    lines = text.removeprefix(PARAMETER_FILE_HEAD).splitlines()
    if any(line.lstrip().startswith("#") for line in lines):
        raise DynidError(f"{path}: its comments would be lost; give another file to --parameters")
    sections = content.values() if isinstance(content, dict) else [None]
    if not all(isinstance(one, dict) and isinstance(one.get(NODE_PARAMETERS, {}), dict) for one in sections):
        raise DynidError(f"{path}: no ROS parameter file; give another file to --parameters")
    return content


def _plain(value: Any) -> Any:
    """Return a value as plain data: paths are absolute texts, arrays are lists of numbers."""
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, (np.ndarray, Sequence)) and not isinstance(value, str):
        return [_plain(entry) for entry in np.asarray(value).tolist()]
    return value
