"""Header of exported C: declarations, names and limits of the arm."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from dynid_ros import __version__
from dynid_ros.export.exported_arm import ExportedArm
from dynid_ros.files import comment_text

_HEADER = """\
/* Dynamics of {name}, identified: {source}. Written by dynid_ros {version}; do not edit.

   C99 that needs nothing but <math.h>: no allocation, no state, safe from any thread. Arrays have {big}_JOINTS entries
   in the order of {prefix}_joint_names: q in rad (m), qd and qdd per s and per s^2, torques in N m (N). Outputs may be
   inputs, `load` may be NULL. A position that is NaN gives torques that are NaN.
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
/* Whose positions are in m and forces in N, where others have rad and N m. */
static const int {prefix}_prismatic[{big}_JOINTS] = {prismatic};
/* As the URDF has them; INFINITY where it has none. */
static const double {prefix}_position_lower[{big}_JOINTS] = {lower};
static const double {prefix}_position_upper[{big}_JOINTS] = {upper};
static const double {prefix}_velocity_limit[{big}_JOINTS] = {velocity};
static const double {prefix}_effort_limit[{big}_JOINTS] = {effort};

/* A rigid body that is fixed to the tip link, in whose frame all its numbers are. */
typedef struct {{
    double mass;       /* kg */
    double center[3];  /* of mass, m */
    double inertia[6]; /* Ixx Ixy Ixz Iyy Iyz Izz about the centre of mass, kg m^2 */
}} {prefix}_load;
{load}
/* Directions of dry friction that remembers the way that the joints went. Start it once, and advance it with each
   sample before the torques of that sample are asked for. Friction without a memory takes NULL. */
typedef struct {{
    double position[{big}_JOINTS];
    double direction[{directions}];
}} {prefix}_memory;
void {prefix}_start_memory({prefix}_memory *memory, const double q[{big}_JOINTS]);
void {prefix}_advance_memory({prefix}_memory *memory, const double q[{big}_JOINTS]);

/* Torque that holds the arm and its load at rest: of gravity{springs}. */
{gravity_torque};
{inverse_dynamics}
/* What the joints add to the torque of the links: {terms}. */
{joint_torque};
{torque}
#ifdef __cplusplus
}}
#endif

#endif
"""
_OF_LINKS = """
/* Torque of the rigid links and the load in motion, gravity included. */
{};
"""
_WHOLE = """
/* The whole torque of a motion, as torque sensors at the joints read it: links, load and joints. */
{};
"""
_LOAD = """
/* The load that was identified. */
static const {prefix}_load {prefix}_identified_load = {{{mass!r}, {center}, {inertia}}};
"""


def c_identifier(name: str) -> str:
    """Prefix of all that the files define, from a name."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "arm"
    return f"_{plain}" if plain[0].isdigit() else plain


def c_header(arm: ExportedArm, prefix: str) -> str:
    """Return the text of the header: limits, names and declarations.

    Args:
        arm: exported arm.
        prefix: of all names, a C identifier.
    """
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
        load=_LOAD.format(prefix=prefix, **numbers) if numbers else "",
        directions=max(len(memory), 1),
        springs=", and of springs and cables at the joints" if arm.own_angle_terms else "",
        terms=", ".join(dict.fromkeys(terms)) or "nothing",
        gravity_torque=head(prefix, "gravity_torque", ("q",)),
        inverse_dynamics=_OF_LINKS.format(head(prefix, "inverse_dynamics")) if with_links else "",
        joint_torque=head(prefix, "joint_torque", memory=True),
        torque=_WHOLE.format(head(prefix, "torque", memory=True)) if with_links else "",
    )


def head(prefix: str, name: str, motion: Iterable[str] = ("q", "qd", "qdd"), *, memory: bool = False) -> str:
    """Head of a function that writes torques."""
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
    """Return a C literal; special characters are written in octal, so that neither quotes nor trigraphs act."""
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in name.encode())
    return f'"{"".join(plain)}"'
