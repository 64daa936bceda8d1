"""C files of an arm and their content."""

from __future__ import annotations

import re
from pathlib import Path

from dynid_ros.errors import ModelError
from dynid_ros.export.c_header import c_header, c_identifier
from dynid_ros.export.c_source import c_source
from dynid_ros.export.export import Export
from dynid_ros.export.exported_arm import ExportedArm
from dynid_ros.export.motion import Motion
from dynid_ros.files import write_atomically

INCLUDABLE_NAME = re.compile(r"[\w .+-]+")


def write(arm: ExportedArm, output: Path, motion: Motion) -> Export:
    """Write a header and a source of one name, which is the prefix of all that they define.

    Raises:
        ModelError: the name ends in something else than .h or .c, or cannot be included.
    """
    if output.suffix not in ("", ".c", ".h"):
        raise ModelError(
            f"{output}: C is written into a .h and a .c of one name; give it with one of these, or neither"
        )
    if not INCLUDABLE_NAME.fullmatch(output.name):
        raise ModelError(
            f"{output}: an #include cannot name such a file; use letters, digits, blanks and . _ + - in its name"
        )
    prefix = c_identifier(output.stem)
    header = output.with_suffix(".h")
    source = output.with_suffix(".c")
    texts = {header: c_header(arm, prefix), source: c_source(arm, prefix, header.name)}
    for path, text in texts.items():
        write_atomically(path, text)
    tip = arm.robot.chain.tips[0]
    holds = [f"gravity torque{', inverse dynamics' * (arm.parameters is not None)} with any load at '{tip}'"]
    terms = dict.fromkeys(part.name for terms in arm.joint_terms for part in terms)
    memory = " and its memory" * bool(arm.friction.memory_keys(arm.robot.n_joints))
    holds += [f"friction{memory}: {', '.join(terms)}"] * bool(terms)
    remarks = [] if arm.parameters is not None else [f"no inverse dynamics: {arm.source} knows gravity alone"]
    remarks += arm.sag("C", motion)
    return Export("c", {"header": header, "source": source}, tuple(holds), tuple(remarks))
