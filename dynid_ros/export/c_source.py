"""The arm in C: one header and one source of C99 that need only the math library.

The code is straight-line arithmetic on doubles, from the generator that also writes the Python of the control loop
(`model.generated_code`): it allocates nothing, has no loops and keeps no state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.export.c_header import head
from dynid_ros.export.exported_arm import ExportedArm
from dynid_ros.model.friction import friction_code
from dynid_ros.model.generated_code import DIRECTION_DECIMALS, ZERO, Lines, Term, constants, text, variable
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC, transformed
from dynid_ros.model.recursion import body_terms, gravity_lines, inverse_dynamics_lines

_MOTION = {"q": "q", "v": "qd", "a": "qdd"}
_LOAD = [variable(f"l{k}") for k in range(PARAMETERS_PER_LINK)]
_INPUT = re.compile(r"\b([qvalcs])(\d+)\b")
_OF_C = {"abs": "fabs", "max": "larger", "min": "smaller"}


def c_source(arm: ExportedArm, prefix: str, header: str) -> str:
    """Return the text of the source.

    Args:
        arm: exported arm.
        prefix: of all names, as in the header.
        header: name of the header's file.
    """
    functions = [_load_parameters(prefix), _gravity(arm, prefix)]
    if arm.parameters is not None:
        functions.append(_dynamics(arm, head(prefix, "inverse_dynamics"), arm.parameters))
    functions += [_memory(arm, prefix), *_joints(arm, prefix)]
    if arm.parameters is not None:
        functions.append(
            f"{head(prefix, 'torque', memory=True)}\n{{\n    int i;\n    double joints[{prefix.upper()}_JOINTS];\n"
            f"    {prefix}_joint_torque(q, qd, qdd, load, memory, joints);\n"
            f"    {prefix}_inverse_dynamics(q, qd, qdd, load, torque);\n"
            f"    for (i = 0; i < {arm.robot.n_joints}; ++i) {{\n        torque[i] += joints[i];\n    }}\n}}\n"
        )
    return "\n".join([f"/* See {header}. */", f'#include "{header}"', "", *functions])


def _load_parameters(prefix: str) -> str:
    """Return C that computes the ten load parameters about the tip link's frame; see `inertia.from_center_of_mass`."""
    return f"""static void load_parameters(const {prefix}_load *load, double p[10])
{{
    if (load == NULL) {{
        p[0] = p[1] = p[2] = p[3] = p[4] = p[5] = p[6] = p[7] = p[8] = p[9] = 0.0;
    }} else {{
        const double m = load->mass, x = load->center[0], y = load->center[1], z = load->center[2];
        p[0] = m;
        p[1] = m * x;
        p[2] = m * y;
        p[3] = m * z;
        p[4] = load->inertia[0] + m * (y * y + z * z);
        p[5] = load->inertia[1] - m * x * y;
        p[6] = load->inertia[2] - m * x * z;
        p[7] = load->inertia[3] + m * (x * x + z * z);
        p[8] = load->inertia[4] - m * y * z;
        p[9] = load->inertia[5] + m * (x * x + y * y);
    }}
}}
"""


def _gravity(arm: ExportedArm, prefix: str) -> str:
    robot = arm.robot
    gravity = arm.gravity
    lines = Lines()
    # A load at the tip adds its mass and mass moments, expressed in the frame of the last link.
    about_link = transformed(np.eye(PARAMETERS_PER_LINK), robot.tip_offset).T
    carried = np.round(gravity.projection[:, robot.tip_columns] @ about_link, DIRECTION_DECIMALS)[:, :STATIC]
    moments = [
        lines.sum(f"n{k}", Term(float(own)), *(Term(float(c)).times(part) for c, part in zip(row, _LOAD, strict=False)))
        for k, (own, row) in enumerate(zip(arm.moments, carried, strict=True))
    ]
    torques = gravity_lines(lines, robot.chain, constants(robot.gravity), gravity.by_link(moments, ZERO))
    results = [text(torque) for torque in torques]
    for i, terms in arm.own_angle_terms.items():
        results[i] += "".join(f" + {value!r} * {part.text(i)}" for part, value in terms.items())
    return _function(head(prefix, "gravity_torque", ("q",)), lines.needed(torques)[0], results)


def _dynamics(arm: ExportedArm, head_of_it: str, parameters: NDArray) -> str:
    lines = Lines()
    chain = arm.robot.chain
    bodies = body_terms(lines, chain, parameters.reshape(-1, PARAMETERS_PER_LINK), _LOAD)
    torques = inverse_dynamics_lines(lines, chain, constants(arm.robot.gravity), bodies)
    return _function(head_of_it, lines.needed(torques)[0], [text(torque) for torque in torques])


def _joints(arm: ExportedArm, prefix: str) -> Iterator[str]:
    """Return C functions for the torque of friction, springs and rotors."""
    directions, entries = friction_code(arm.friction, arm.robot.n_joints)
    sums: list[list[str]] = [[] for _ in arm.robot.joint_names]
    for row, column, expression in entries:
        sums[row].append(f"{float(arm.coefficients[column])!r} * ({expression})")
    results = [_of_c(" + ".join(terms)) or "0.0" for terms in sums]
    used = set(re.findall(r"\bd\d+\b", " ".join(results)))
    lines = [_of_c(line) for line in directions if line.split(" = ")[0] in used]
    before = []
    if arm.friction.needs_load:
        loads = arm.robot.parameters if arm.friction.load_parameters is None else arm.friction.load_parameters
        yield _dynamics(arm, f"static {head(prefix, 'gear_load')}", loads)
        before = [f"double loads[{prefix.upper()}_JOINTS];", f"{prefix}_gear_load(q, qd, qdd, load, loads);"]
    for name, sign in (("larger", ">"), ("smaller", "<")):
        if name in " ".join(results):
            # not fmax, which has no NaN
            yield f"static double {name}(double x, double y)\n{{\n    return y {sign} x ? y : x;\n}}\n"
    yield _function(head(prefix, "joint_torque", memory=True), lines, results, before)


def _of_c(expression: str) -> str:
    called = re.sub(r"\b(abs|max|min)\(", lambda match: f"{_OF_C[match[1]]}(", expression)
    return called.replace("memory[", "memory->direction[")


def _memory(arm: ExportedArm, prefix: str) -> str:
    keys = arm.friction.memory_keys(arm.robot.n_joints)
    advances = []
    for k, (joints, length) in enumerate(keys):
        way = " + ".join(f"(q[{i}] - memory->position[{i}])" for i in joints)
        advances.append(f"    memory->direction[{k}] = slid({way}, {length!r}, memory->direction[{k}]);")
    copy = f"    for (i = 0; i < {arm.robot.n_joints}; ++i) {{\n        memory->position[i] = q[i];\n    }}\n"
    slid = """/* ds/dq = (1 - s sign(v)) / length (Dahl 1968), solved for a way that does not reverse. */
static double slid(double way, double length, double direction)
{
    const double side = way > 0.0 ? 1.0 : -1.0;
    return way == 0.0 ? direction : side + (direction - side) * exp(-fabs(way) / length);
}

"""
    arguments = f"({prefix}_memory *memory, const double q[{prefix.upper()}_JOINTS])"
    return (
        (slid if keys else "")
        + f"void {prefix}_start_memory{arguments}\n{{\n    int i;\n{copy}"
        + f"    for (i = 0; i < {max(len(keys), 1)}; ++i) {{\n        memory->direction[i] = 0.0;\n    }}\n}}\n\n"
        + f"void {prefix}_advance_memory{arguments}\n{{\n    int i;\n"
        + "".join(f"{line}\n" for line in advances)
        + copy
        + "}\n"
    )


def _function(head_of_it: str, lines: Sequence[str], results: Sequence[str], before: Sequence[str] = ()) -> str:
    """Return a C function that reads the inputs of its lines, and writes its results at the end.

    Args:
        head_of_it: its name and arguments.
        lines: assignments, each to a new variable.
        results: expressions of the torques.
        before: statements that come first and fill an array `loads`; without them l0 to l9 are a load's parameters.
    """
    read = {(letter, int(number)) for letter, number in _INPUT.findall(" ".join([*lines, *results]))}
    made = {line.split(" = ")[0] for line in lines}
    read = {(letter, i) for letter, i in read if f"{letter}{i}" not in made}
    read |= {("q", i) for letter, i in read if letter in "cs"}
    arrays = {**_MOTION, "l": "loads" if before else "p"}
    body = list(before)
    if not before and any(letter == "l" for letter, _ in read):
        body += ["double p[10];", "load_parameters(load, p);"]
    body += [f"const double {letter}{i} = {arrays[letter]}[{i}];" for letter, i in sorted(read) if letter in arrays]
    functions = {"c": "cos", "s": "sin"}
    body += [f"const double {letter}{i} = {functions[letter]}(q{i});" for letter, i in sorted(read) if letter in "cs"]
    body += [f"const double {line};" for line in lines]
    body += [f"torque[{i}] = {result};" for i, result in enumerate(results)]
    arguments = re.findall(r"(\w+)(?:\[\w+\])?[,)]", head_of_it)
    idle = [name for name in arguments if not re.search(rf"\b{name}\b", " ".join(body))]
    return "\n".join([head_of_it, "{", *(f"    {line}" for line in [*(f"(void){x};" for x in idle), *body]), "}", ""])
