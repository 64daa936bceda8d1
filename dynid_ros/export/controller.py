"""Export of an `ament_cmake` package with a chainable ros2_control controller that uses the exported C."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from dynid_ros import __version__
from dynid_ros.errors import ModelError
from dynid_ros.export.c_source import c_header, c_source
from dynid_ros.export.exported_arm import Export, ExportedArm, Motion
from dynid_ros.files import comment_text, write_atomically

TEMPLATES = Path(__file__).with_name("controller_package")
PACKAGE_NAME = re.compile(r"[a-z][a-z0-9_]*")
CONTROLLER_PREFIX = "arm"
"""Prefix of all names in the exported C."""
RENDERED = {
    "controller.cpp.in": "src/controller.cpp",
    "CMakeLists.txt.in": "CMakeLists.txt",
    "package.xml.in": "package.xml",
    "plugin.xml.in": "plugin.xml",
}
"""Path in the package for each template."""


def write(arm: ExportedArm, output: Path, motion: Motion) -> Export:
    """Write the package to the folder `output`, whose name is also the name of the package.

    Raises:
        ModelError: a ROS package cannot have this name, or a folder cannot be created.
    """
    name = output.name
    if not PACKAGE_NAME.fullmatch(name):
        raise ModelError(
            f"{output}: a ROS package cannot have this name; use lower-case letters, digits and _, such as "
            "my_arm_gravity_controller"
        )
    header = f"{CONTROLLER_PREFIX}.h"
    texts = {
        f"include/{header}": c_header(arm, CONTROLLER_PREFIX),
        f"src/{CONTROLLER_PREFIX}.c": c_source(arm, CONTROLLER_PREFIX, header),
        "include/gravity_loop.hpp": (TEMPLATES / "gravity_loop.hpp").read_text(encoding="utf-8"),
    }
    for template, place in RENDERED.items():
        robot_name = comment_text(arm.robot.name)
        words = {
            "ARM": escape(robot_name) if place.endswith(".xml") else robot_name,
            "VERSION": __version__,
            "PREFIX": CONTROLLER_PREFIX,
            "BIG": CONTROLLER_PREFIX.upper(),
            "PACKAGE": name,
        }
        texts[place] = _filled((TEMPLATES / template).read_text(encoding="utf-8"), words)
    files = {place: output / place for place in texts}
    for place, path in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ModelError(f"cannot make the folder {path.parent} ({error.strerror}); choose another") from error
        write_atomically(path, texts[place])
    holds = [
        "gravity torque with any load at the tip link, in a chainable controller of ros2_control",
        "ramps, limits, rates, staleness, scale and load as in gravity_compensation",
    ]
    remarks = [
        "the controller does not lower the arm after a fault, watch its motion, or compensate friction; the node does",
        *arm.sag("the controller", motion),
    ]
    return Export("controller", files, tuple(holds), tuple(remarks))


def _filled(template: str, words: Mapping[str, str]) -> str:
    """Return a template with a word in place of each @NAME@."""
    return re.sub(r"@([A-Z]+)@", lambda match: words[match[1]], template)
