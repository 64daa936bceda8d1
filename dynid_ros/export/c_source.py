"""Export to C99: one header and one source file, which need only the math library.

The code is straight-line arithmetic on doubles. The generator (`model.generated_code`) also writes the Python code of
the control loop. The C code allocates no memory, has no data-dependent loops and keeps no state.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros import __version__
from dynid_ros.errors import ModelError
from dynid_ros.export.exported_arm import Export, ExportedArm, Motion
from dynid_ros.files import comment_text, write_atomically
from dynid_ros.model.friction import friction_code
from dynid_ros.model.generated_code import DIRECTION_DECIMALS, ZERO, Lines, Term, constants, text, variable
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC, transformed
from dynid_ros.model.recursion import body_terms, gravity_lines, inverse_dynamics_lines

_HEADER = """\
/* Dynamics of {name}, identified: {source}. Written by dynid_ros {version}; do not edit.

   C99 that needs only <math.h>: no allocation, no state, thread-safe. Arrays have {big}_JOINTS entries in the order of
   {prefix}_joint_names: q in rad (m), qd and qdd per s and per s^2, torques in N m (N). An output array may be an input
   array, `load` may be NULL. A position that is NaN gives torques that are NaN.
   Gravity is ({gravity}) m/s^2 in the frame of the base link. */
#ifndef {big}_H
#define {big}_H

#include <math.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {big}_JOINTS {joints}
#define {big}_HAS_INVERSE_DYNAMICS {with_links}
#define {big}_HAS_MEMORY {with_memory}

static const char *const {prefix}_joint_names[{big}_JOINTS] = {joint_names};
static const char *const {prefix}_base_link = {base};
static const char *const {prefix}_tip_link = {tip};
/* 1 for prismatic joints, with positions in m and forces in N; 0 for others, with rad and N m. */
static const int {prefix}_prismatic[{big}_JOINTS] = {prismatic};
/* Limits of the URDF; INFINITY if it has none. */
static const double {prefix}_position_lower[{big}_JOINTS] = {lower};
static const double {prefix}_position_upper[{big}_JOINTS] = {upper};
static const double {prefix}_velocity_limit[{big}_JOINTS] = {velocity};
static const double {prefix}_effort_limit[{big}_JOINTS] = {effort};

/* A rigid body that is fixed to the tip link; all values are in the frame of this link. */
typedef struct {{
    double mass;       /* kg */
    double center[3];  /* centre of mass, m */
    double inertia[6]; /* Ixx Ixy Ixz Iyy Iyz Izz about the centre of mass, kg m^2 */
}} {prefix}_load;
{load}
/* State of dry friction that depends on past motion. Start it once, and advance it with each sample before the torques
   of that sample are computed. If {big}_HAS_MEMORY is 0, `memory` may be NULL. */
typedef struct {{
    double position[{big}_JOINTS];
    double direction[{directions}];
}} {prefix}_memory;
void {prefix}_start_memory({prefix}_memory *memory, const double q[{big}_JOINTS]);
void {prefix}_advance_memory({prefix}_memory *memory, const double q[{big}_JOINTS]);

/* Torque that holds the arm and its load at rest: gravity{springs}. */
{gravity_torque};
{inverse_dynamics}
/* Torque of the joints in addition to that of the links: {terms}. */
{joint_torque};
{torque}
#ifdef __cplusplus
}}
#endif

#endif
"""
_OF_LINKS = """
/* Torque of the rigid links and the load in motion, including gravity. */
{};
"""
_WHOLE = """
/* Total torque of a motion, as torque sensors at the joints measure it: links, load and joints. */
{};
"""
_LOAD_DECLARATIONS = """
/* The identified load. */
static const {prefix}_load {prefix}_identified_load = {{{mass!r}, {center}, {inertia}}};
"""
INCLUDABLE_NAME = re.compile(r"[\w .+-]+")


def c_identifier(name: str) -> str:
    """Return a C identifier from a file name, the prefix of all names that the files define."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "arm"
    return f"_{plain}" if plain[0].isdigit() else plain


def c_header(arm: ExportedArm, prefix: str) -> str:
    """Return the text of the header: limits, names and declarations."""
    robot = arm.robot
    limits = arm.robot.limits
    load = arm.load
    memory = arm.friction.memory_keys(robot.n_joints)
    with_links = arm.parameters is not None
    terms = [part.name.replace("_", " ") for joint in arm.friction.per_joint(robot.n_joints) for part in joint.parts]
    terms += ["coupled motors"] * bool(arm.friction.coupled)
    numbers = load and {"mass": load.mass, "center": _numbers(load.center), "inertia": _numbers(load.inertia)}
    return _HEADER.format(
        name=comment_text(robot.name),
        source=comment_text(arm.source),
        version=__version__,
        prefix=prefix,
        big=prefix.upper(),
        gravity=", ".join(f"{g:g}" for g in robot.gravity),
        joints=robot.n_joints,
        with_links=int(with_links),
        with_memory=int(bool(memory)),
        joint_names=_list(map(_string, robot.joint_names)),
        base=_string(robot.base),
        tip=_string(robot.chain.tips[0]),
        prismatic=_list(str(int(slides)) for slides in robot.chain.prismatic),
        lower=_numbers(limits.lower),
        upper=_numbers(limits.upper),
        velocity=_numbers(limits.velocity),
        effort=_numbers(limits.effort),
        load=_LOAD_DECLARATIONS.format(prefix=prefix, **numbers) if numbers else "",
        directions=max(len(memory), 1),
        springs=", and springs and cables at the joints" if arm.own_angle_terms else "",
        terms=", ".join(dict.fromkeys(terms)) or "nothing",
        gravity_torque=head(prefix, "gravity_torque", ("q",)),
        inverse_dynamics=_OF_LINKS.format(head(prefix, "inverse_dynamics")) if with_links else "",
        joint_torque=head(prefix, "joint_torque", memory=True),
        torque=_WHOLE.format(head(prefix, "torque", memory=True)) if with_links else "",
    )


def head(prefix: str, name: str, motion: Iterable[str] = ("q", "qd", "qdd"), *, memory: bool = False) -> str:
    """Return the head of a C function that writes torques.

    Args:
        prefix: prefix of all names.
        name: name of the function after the prefix.
        motion: names of the input arrays.
        memory: whether the function reads the state of dry friction.
    """
    arguments = [f"const double {array}[{prefix.upper()}_JOINTS]" for array in motion]
    arguments += [f"const {prefix}_load *load", *([f"const {prefix}_memory *memory"] if memory else [])]
    return f"void {prefix}_{name}({', '.join(arguments)},\n    double torque[{prefix.upper()}_JOINTS])"


def _numbers(values: Iterable[float]) -> str:
    return _list(map(_number, map(float, values)))


def _list(words: Iterable[str]) -> str:
    return f"{{{', '.join(words)}}}"


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else "INFINITY" if value > 0.0 else "-INFINITY"


def _string(name: str) -> str:
    """Return a C string literal; special characters are octal escapes, so that quotes and trigraphs have no effect."""
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in name.encode())
    return f'"{"".join(plain)}"'


_MOTION = {"q": "q", "v": "qd", "a": "qdd"}
_LOAD = [variable(f"l{k}") for k in range(PARAMETERS_PER_LINK)]
_INPUT = re.compile(r"\b([qvalcs])(\d+)\b")
"""Inputs of generated code: position, velocity, acceleration, load, cosine and sine, each with an index."""
_OF_C = {"abs": "fabs", "max": "larger", "min": "smaller"}


def c_source(arm: ExportedArm, prefix: str, header: str) -> str:
    """Return the text of the source.

    Args:
        arm: exported arm.
        prefix: prefix of all names, as in the header.
        header: file name of the header.
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
    """Return the C function of the torque at rest."""
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


def _dynamics(arm: ExportedArm, declaration: str, parameters: NDArray) -> str:
    """Return a C function with the given head that computes inverse dynamics with link parameters (10 n,)."""
    lines = Lines()
    chain = arm.robot.chain
    bodies = body_terms(lines, chain, parameters.reshape(-1, PARAMETERS_PER_LINK), _LOAD)
    torques = inverse_dynamics_lines(lines, chain, constants(arm.robot.gravity), bodies)
    return _function(declaration, lines.needed(torques)[0], [text(torque) for torque in torques])


def _joints(arm: ExportedArm, prefix: str) -> Iterator[str]:
    """Yield the C functions for the torque of friction, springs and rotors."""
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
            # The functions fmax and fmin of C would drop NaN.
            yield f"static double {name}(double x, double y)\n{{\n    return y {sign} x ? y : x;\n}}\n"
    yield _function(head(prefix, "joint_torque", memory=True), lines, results, before)


def _of_c(expression: str) -> str:
    """Convert an expression of Python to C."""
    called = re.sub(r"\b(abs|max|min)\(", lambda match: f"{_OF_C[match[1]]}(", expression)
    return called.replace("memory[", "memory->direction[")


def _memory(arm: ExportedArm, prefix: str) -> str:
    """Return the C functions that start and advance the state of dry friction."""
    keys = arm.friction.memory_keys(arm.robot.n_joints)
    advances = []
    for k, (joints, length) in enumerate(keys):
        displacement = " + ".join(f"(q[{i}] - memory->position[{i}])" for i in joints)
        advances.append(f"    memory->direction[{k}] = slid({displacement}, {length!r}, memory->direction[{k}]);")
    copy = f"    for (i = 0; i < {arm.robot.n_joints}; ++i) {{\n        memory->position[i] = q[i];\n    }}\n"
    slid = """/* Solution of ds/dq = (1 - s sign(v)) / length (Dahl 1968) for a displacement without reversal. */
static double slid(double displacement, double length, double direction)
{
    const double side = displacement > 0.0 ? 1.0 : -1.0;
    return displacement == 0.0 ? direction : side + (direction - side) * exp(-fabs(displacement) / length);
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


def _function(declaration: str, lines: Sequence[str], results: Sequence[str], before: Sequence[str] = ()) -> str:
    """Return a C function that reads the inputs which its lines use, and writes the torques at the end.

    Args:
        declaration: name and arguments of the function.
        lines: assignments, each to a new variable.
        results: expressions of the torques.
        before: statements that come first and fill an array `loads`, which l0, l1 … then denote; otherwise l0 to l9 are
            the parameters of the load.
    """
    read = {(letter, int(number)) for letter, number in _INPUT.findall(" ".join([*lines, *results]))}
    assigned = {line.split(" = ")[0] for line in lines}
    read = {(letter, i) for letter, i in read if f"{letter}{i}" not in assigned}
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
    arguments = re.findall(r"(\w+)(?:\[\w+\])?[,)]", declaration)
    unused = [name for name in arguments if not re.search(rf"\b{name}\b", " ".join(body))]
    body = [*(f"(void){name};" for name in unused), *body]
    return "\n".join([declaration, "{", *(f"    {line}" for line in body), "}", ""])


def write(arm: ExportedArm, output: Path, motion: Motion) -> Export:
    """Write a header and a source file with the same name, which is also the prefix of all names that they define.

    Raises:
        ModelError: the name has a suffix other than .h and .c, or an #include cannot contain it.
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
    for path, content in texts.items():
        write_atomically(path, content)
    tip = arm.robot.chain.tips[0]
    holds = [f"gravity torque{', inverse dynamics' * (arm.parameters is not None)} with any load at '{tip}'"]
    terms = dict.fromkeys(part.name for terms in arm.joint_terms for part in terms)
    memory = " and its memory" * bool(arm.friction.memory_keys(arm.robot.n_joints))
    holds += [f"friction{memory}: {', '.join(terms)}"] * bool(terms)
    remarks = [] if arm.parameters is not None else [f"no inverse dynamics: {arm.source} knows gravity alone"]
    remarks += arm.sag("C", motion)
    return Export("c", {"header": header, "source": source}, tuple(holds), tuple(remarks))
