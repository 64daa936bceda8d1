"""The rigid-body recursion as straight-line code: motions from base to tip, wrenches and moments from tip to base.

The functions of this module add assignments to `Lines` and return terms. The resulting text serves one sample (floats,
in the control loop and in exported C) and many samples (arrays, in `model.dynamics`).

All vectors are in the joint frame of their link. A body's point at r has the acceleration a + B r, where a is the
acceleration of the frame's origin minus gravity and B = [dω/dt]× + [ω]× [ω]×. The wrench that moves the body follows
from its mass m, mass moment m c and second moments Σ = ½ tr(I) 1 − I about the origin:
force = m a + B m c, moment = m c × a + vee(B Σ − (B Σ)ᵀ), where vee takes the vector of an antisymmetric matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model.chain import Chain
from dynid_ros.model.generated_code import (
    DIRECTION_DECIMALS,
    ZERO,
    JointVariables,
    Lines,
    Term,
    Vector,
    constants,
    joint_variables,
)
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC, transformed

AXES = "xyz"
CYCLIC = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
"""Each axis with the two axes whose cross product it is."""
PRODUCTS = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))
"""Order of the products of angular velocity: xx, yy, zz, xy, yz, zx."""


class LinkMotion(NamedTuple):
    """Motion of one link in its joint frame.

    Attributes:
        joint: position, velocity, acceleration, sine and cosine of the joint that moves the link.
        arm: origin of the joint frame in the joint frame of the parent, m.
        angular_velocity: ω, rad/s.
        angular_acceleration: dω/dt, rad/s².
        acceleration: of the origin of the joint frame, minus gravity, m/s².
        products: products of the components of ω, in the order of `PRODUCTS`.
        gradient: (3, 3) B, the derivative of the acceleration with respect to the place in the link, 1/s².
    """

    joint: JointVariables
    arm: Vector
    angular_velocity: Vector
    angular_acceleration: Vector
    acceleration: Vector
    products: Vector
    gradient: list[Vector]


def motion_lines(lines: Lines, chain: Chain, gravity: Sequence[Term], *, velocities: bool = False) -> list[LinkMotion]:
    """Add the lines that compute the motion of each link, and return the motions.

    Args:
        lines: receives the lines.
        chain: the arm.
        gravity: three terms in the base frame, m/s².
        velocities: take the joints' velocities for their accelerations, of an arm at rest. Accelerations of links that
            result are the links' velocities, because both pass from frame to frame in the same way.
    """
    zero = [ZERO] * 3
    joints = joint_variables(lines, chain)
    # Gravity enters as an upward acceleration of the base.
    base = LinkMotion(joints[0], zero, zero, zero, [-term for term in gravity], [ZERO] * len(PRODUCTS), [zero] * 3)
    motions = [base] * (chain.n_links + 1)  # the last one, of index -1, is the base
    for i, (joint, parent) in enumerate(zip(joints, chain.parents, strict=True)):
        before = motions[parent]
        slides = bool(chain.slides[i])
        speed = ZERO if velocities else joint.velocity
        gain = joint.velocity if velocities else joint.acceleration
        rotation = chain.transforms[i, :3, :3]
        turn = None if slides else joint
        arm = _arm(lines, chain, i, joint)
        acceleration = [
            lines.sum(f"e{i}{x}", before.acceleration[k], *_products(before.gradient[k], arm))
            for k, x in enumerate(AXES)
        ]
        omega, alpha, acceleration = (
            _inward(lines, f"{name}{i}", rotation, turn, vector)
            for name, vector in (
                ("w", before.angular_velocity),
                ("dw", before.angular_acceleration),
                ("f", acceleration),
            )
        )
        if slides:
            acceleration = [
                lines.sum(f"h{i}x", acceleration[0], Term(2.0).times(omega[1]).times(speed)),
                lines.sum(f"h{i}y", acceleration[1], Term(-2.0).times(omega[0]).times(speed)),
                lines.sum(f"h{i}z", acceleration[2], gain),
            ]
        else:
            alpha = [
                lines.sum(f"k{i}x", alpha[0], omega[1].times(speed)),
                lines.sum(f"k{i}y", alpha[1], -omega[0].times(speed)),
                lines.sum(f"k{i}z", alpha[2], gain),
            ]
            omega = [*omega[:2], lines.sum(f"o{i}z", omega[2], speed)]
        products = [lines.sum(f"p{i}{AXES[j]}{AXES[k]}", omega[j].times(omega[k])) for j, k in PRODUCTS]
        gradient = _acceleration_gradient(lines, i, alpha, products)
        motions[i] = LinkMotion(joint, arm, omega, alpha, acceleration, products, gradient)
    return motions[:-1]


def inverse_dynamics_lines(
    lines: Lines, chain: Chain, gravity: Sequence[Term], bodies: Sequence[Sequence[Term]]
) -> list[Term]:
    """Add the lines that compute the torques of a motion, and return the torques (n,).

    The lines use q0, v0 and a0 of the first joint, its sine s0 and cosine c0, and so on.

    Args:
        lines: receives the lines.
        chain: the arm.
        gravity: three terms in the base frame, m/s².
        bodies: (m, 10) parameters about the joint frames, see `body_terms`.
    """
    motions = motion_lines(lines, chain, gravity)
    wrenches = _carried_wrenches(lines, chain, bodies, motions)
    return _sum_by_joint(lines, "J", chain, [[axial] for axial in _axial(chain, wrenches)])


def momentum_lines(lines: Lines, chain: Chain, bodies: Sequence[Sequence[Term]]) -> tuple[list[Term], list[Term]]:
    """Add the lines that compute the generalized momentum and its rate without torques and gravity; return both (n,).

    With the mass matrix M and Christoffel's C they are M q̇ and Cᵀ q̇ = ½ ∂(q̇ᵀ M q̇)/∂q, so that M q̇ has the time
    derivative τ + Cᵀ q̇ − g (De Luca and Mattone 2003, eq. 6). The links beyond a joint have the momentum h = (l, k) in
    its frame; the joint, of screw s, takes s·h of it. If the joint turns these links, their velocity V changes by V × s
    and their energy by h·(V × s).

    Args:
        lines: receives the lines, which use q0 and v0 of the first joint, its sine s0 and cosine c0, and so on.
        chain: the arm.
        bodies: (m, 10) parameters about the joint frames, see `body_terms`.
    """
    motions = motion_lines(lines, chain, [ZERO] * 3, velocities=True)
    momenta = _carried_wrenches(lines, chain, bodies, motions)
    changes = []
    for i, (motion, (linear, angular)) in enumerate(zip(motions, momenta, strict=True)):
        v = motion.acceleration
        w = motion.angular_acceleration
        pairs = [(linear, w)] if chain.slides[i] else [(angular, w), (linear, v)]
        changes.append([term for h, u in pairs for term in (h[0].times(u[1]), -h[1].times(u[0]))])
    momentum = _sum_by_joint(lines, "P", chain, [[axial] for axial in _axial(chain, momenta)])
    return momentum, _sum_by_joint(lines, "E", chain, changes)


def gravity_lines(lines: Lines, chain: Chain, gravity: Sequence[Term], moments: Sequence[Sequence[Term]]) -> list[Term]:
    """Add the lines that compute the torques of an arm at rest, and return the torques (n,).

    Gravity is turned from frame to frame towards the tip, and the mass moment of all that is carried from frame to
    frame towards the base (Ma and Hollerbach 1996, eqs 7 and 18).

    Args:
        lines: receives the lines.
        chain: the arm.
        gravity: three terms in the base frame, m/s².
        moments: for each link (n_x, n_y) about its joint, or (mass, …) for a prismatic joint, see `link_moments`.
    """
    rotations = chain.transforms[:, :3, :3]
    joints = joint_variables(lines, chain)
    downs = [list(gravity)] * (chain.n_links + 1)  # gravity after each joint; the last one is the base's
    stills = [list(gravity)] * chain.n_links  # gravity before each joint
    for i, joint in enumerate(joints):
        stills[i] = downs[i] = lines.rotated(f"d{i}", rotations[i].T, downs[chain.parents[i]])
        if not chain.slides[i]:
            downs[i] = lines.turned(f"g{i}", joint.cos, -joint.sin, downs[i])
    carried: list[list[Vector]] = [[] for _ in downs]
    torques: list[list[Term]] = [[] for _ in joints]
    for i, joint in reversed(list(enumerate(joints))):
        moment = [lines.sum(f"b{i}{x}", *(part[k] for part in carried[i])) for k, x in enumerate(AXES)]
        if chain.slides[i]:
            mass = moments[i][0]
            torques[i] = [-mass.times(downs[i][2])]
            moment[2] = lines.sum(f"m{i}z", moment[2], mass.times(joint.position))
        else:
            for k in range(2):
                moment[k] = lines.sum(f"m{i}{AXES[k]}", moment[k], moments[i][k])
            turned = lines.turned(f"r{i}", joint.cos, joint.sin, moment)
            # The torque is the same with both vectors before the joint or both after it. Gravity after the joint exists
            # if links follow, the moment before the joint if links precede.
            is_after = i in chain.parents or chain.parents[i] < 0
            down, lever = (downs[i], moment) if is_after else (stills[i], turned)
            torques[i] = [down[0].times(lever[1]), -down[1].times(lever[0])]
            moment = turned
        carried[chain.parents[i]].append(lines.rotated(f"p{i}", rotations[i], moment))
    return _sum_by_joint(lines, "j", chain, [[lines.sum(f"t{i}", *parts)] for i, parts in enumerate(torques)])


@lru_cache(maxsize=32)
def link_moments(chain: Chain) -> NDArray:
    """Return the matrix (m, 2, 10 m) from the parameters to the moments of `gravity_lines`.

    A revolute joint has n_x and n_y, the mass moment about the joint of all that it carries, as far as the moment is
    constant in the joint frame. A prismatic joint has the mass of all that it carries, and zero. The moment along a
    revolute axis and the whole moment beyond a prismatic joint are constant in the parent's frame, too, and pass on to
    the parent (Ma and Hollerbach 1996, eq. 16).
    """
    size = PARAMETERS_PER_LINK * chain.n_links
    moments = np.zeros((chain.n_links, 2, size))
    carried_moments = np.zeros((chain.n_links + 1, 3, size))  # the last one is the base's
    carried_masses = np.zeros((chain.n_links + 1, size))
    for i in reversed(range(chain.n_links)):
        own_mass, *own_moment = np.eye(4, size, PARAMETERS_PER_LINK * i)
        offset = chain.link_offsets[i]
        transform = chain.transforms[i]
        moment = carried_moments[i] + offset[:3, :3] @ own_moment + np.outer(offset[:3, 3], own_mass)
        mass = carried_masses[i] + own_mass
        if chain.slides[i]:
            moments[i, 0] = mass
        else:
            moments[i] = moment[:2]
            moment[:2] = 0.0
        carried_moments[chain.parents[i]] += transform[:3, :3] @ moment + np.outer(transform[:3, 3], mass)
        carried_masses[chain.parents[i]] += mass
    return moments


def body_terms(lines: Lines, chain: Chain, parameters: NDArray, load: Sequence[Term] = ()) -> list[Vector]:
    """Return ten terms per link, the lumped parameters about the joint frame.

    Args:
        lines: receives the lines of the link that carries the load.
        chain: the arm.
        parameters: (m, 10) about the link frames.
        load: ten terms, the parameters of a load about the frame of the tip link; empty without a load.
    """
    bodies = [constants(body) for body in lumped_bodies(chain, parameters)]
    if load:
        pose = chain.link_offsets[chain.tip_link] @ chain.tip_offset
        about_joint = np.round(transformed(np.eye(PARAMETERS_PER_LINK), pose).T, DIRECTION_DECIMALS)
        bodies[chain.tip_link] = [
            lines.sum(f"B{k}", own, *_products(constants(row), load))
            for k, (own, row) in enumerate(zip(bodies[chain.tip_link], about_joint, strict=True))
        ]
    return bodies


def lumped_bodies(chain: Chain, parameters: NDArray) -> NDArray:
    """Return parameters (m, 10) about the joint frames that give the same torques with as many zeros as possible.

    A thin rod along a revolute axis moves with the parent whatever the joint does, so m, mcz and Iyy become zero and
    the rod that has them moves to the parent. A prismatic joint does not turn its link, so the inertia moves to the
    parent (Khalil and Bennis 1995, "Symbolic calculation of the base inertial parameters of closed-loop robots").

    Args:
        chain: the arm.
        parameters: (..., m, 10) about the link frames.
    """
    bodies = transformed(parameters, chain.link_offsets)
    for i in reversed(range(chain.n_links)):
        moved = np.zeros_like(bodies[..., i, :])
        if chain.slides[i]:
            moved[..., STATIC:] = bodies[..., i, STATIC:]
        else:
            moved[..., [0, 3, 4, 7]] = bodies[..., i, [0, 3, 7, 7]]
        bodies[..., i, :] -= moved
        if chain.parents[i] >= 0:
            bodies[..., chain.parents[i], :] += transformed(moved, chain.transforms[i])
    return bodies


def frame_lines(lines: Lines, chain: Chain, motions: Sequence[LinkMotion]) -> list[tuple[list[Vector], Vector]]:
    """Add the lines of the joint frames in the base frame; return for each link its axes (three vectors) and origin."""
    base = [constants(row) for row in np.eye(3)], [ZERO] * 3
    frames = [base] * (chain.n_links + 1)
    for i, (motion, parent) in enumerate(zip(motions, chain.parents, strict=True)):
        axes, origin = frames[parent]
        by_component = [[axis[k] for axis in axes] for k in range(3)]
        turn = None if chain.slides[i] else motion.joint
        origin = [lines.sum(f"O{i}{x}", origin[k], *_products(by_component[k], motion.arm)) for k, x in enumerate(AXES)]
        rows = [
            _inward(lines, f"R{i}{x}", chain.transforms[i, :3, :3], turn, by_component[k]) for k, x in enumerate(AXES)
        ]
        frames[i] = [[row[k] for row in rows] for k in range(3)], origin
    return frames[:-1]


def _arm(lines: Lines, chain: Chain, i: int, joint: JointVariables) -> Vector:
    """Return the origin of the joint frame of link i in that of its parent."""
    transform = chain.transforms[i]
    arm = constants(transform[:3, 3])
    if not chain.slides[i]:
        return arm
    along = np.round(transform[:3, 2], DIRECTION_DECIMALS)
    return [
        lines.sum(f"A{i}{x}", part, Term(float(c)).times(joint.position))
        for x, part, c in zip(AXES, arm, along, strict=True)
    ]


def _inward(lines: Lines, name: str, rotation: NDArray, turn: JointVariables | None, vector: Sequence[Term]) -> Vector:
    """Return a vector in the next joint frame, given in the one before; None for a joint that does not turn."""
    still = lines.rotated(f"{name}r", rotation.T, vector)
    return still if turn is None else lines.turned(f"{name}t", turn.cos, -turn.sin, still)


def _products(first: Sequence[Term], second: Sequence[Term]) -> list[Term]:
    return [one.times(other) for one, other in zip(first, second, strict=True)]


def _acceleration_gradient(lines: Lines, i: int, alpha: Sequence[Term], products: Sequence[Term]) -> list[Vector]:
    """Return B = [dω/dt]× + [ω]× [ω]×, where [ω]× [ω]× = ω ωᵀ − |ω|² 1."""
    xx, yy, zz, xy, yz, zx = products
    ax, ay, az = alpha
    entries = (
        ((-yy, -zz), (xy, -az), (zx, ay)),
        ((xy, az), (-xx, -zz), (yz, -ax)),
        ((zx, -ay), (yz, ax), (-xx, -yy)),
    )
    return [
        [lines.sum(f"B{i}{AXES[j]}{AXES[k]}", *parts) for k, parts in enumerate(row)] for j, row in enumerate(entries)
    ]


def _carried_wrenches(
    lines: Lines, chain: Chain, bodies: Sequence[Sequence[Term]], motions: Sequence[LinkMotion]
) -> list[tuple[Vector, Vector]]:
    """Return force and moment of each link and of all that follow it, in its joint frame.

    Given velocities in place of accelerations, the result is linear and angular momentum.
    """
    wrenches = [_wrench(lines, i, *pair) for i, pair in enumerate(zip(bodies, motions, strict=True))]
    for i in reversed(range(chain.n_links)):
        parent = chain.parents[i]
        motion = motions[i]
        if parent < 0:
            continue
        rotation = chain.transforms[i, :3, :3]
        force, moment = wrenches[i]
        if not chain.slides[i]:
            force = lines.turned(f"T{i}", motion.joint.cos, motion.joint.sin, force)
            moment = lines.turned(f"U{i}", motion.joint.cos, motion.joint.sin, moment)
        force = lines.rotated(f"V{i}", rotation, force)
        moment = lines.rotated(f"W{i}", rotation, moment)
        force_before, moment_before = wrenches[parent]
        wrenches[parent] = (
            [lines.sum(f"F{i}{x}", force_before[k], force[k]) for k, x in enumerate(AXES)],
            [
                lines.sum(
                    f"M{i}{AXES[k]}",
                    moment_before[k],
                    moment[k],
                    motion.arm[following].times(force[last]),
                    -motion.arm[last].times(force[following]),
                )
                for k, following, last in CYCLIC
            ],
        )
    return wrenches


def _wrench(lines: Lines, i: int, body: Sequence[Term], motion: LinkMotion) -> tuple[Vector, Vector]:
    """Return force and moment that move the body of link i."""
    mass, *mass_moment = body[:4]
    xx, xy, xz, yy, yz, zz = body[4:]
    a = motion.acceleration
    gradient = motion.gradient
    half = Term(0.5)
    principal = [
        lines.sum(f"S{i}{AXES[k]}", *(half.times(part) for part in parts))
        for k, parts in enumerate(((-xx, yy, zz), (xx, -yy, zz), (xx, yy, -zz)))
    ]
    second_moments = ((principal[0], -xy, -xz), (-xy, principal[1], -yz), (-xz, -yz, principal[2]))
    force = [lines.sum(f"N{i}{x}", mass.times(a[k]), *_products(mass_moment, gradient[k])) for k, x in enumerate(AXES)]
    moment = [
        lines.sum(
            f"L{i}{AXES[k]}",
            mass_moment[following].times(a[last]),
            -mass_moment[last].times(a[following]),
            *_products(second_moments[following], gradient[last]),
            *(-term for term in _products(second_moments[last], gradient[following])),
        )
        for k, following, last in CYCLIC
    ]
    return force, moment


def _axial(chain: Chain, wrenches: Sequence[tuple[Vector, Vector]]) -> list[Term]:
    """Return the component of each link's wrench along its joint: a force for a prismatic joint, else a moment."""
    return [wrench[0 if slides else 1][2] for wrench, slides in zip(wrenches, chain.slides, strict=True)]


def _sum_by_joint(lines: Lines, name: str, chain: Chain, links: Sequence[Sequence[Term]]) -> list[Term]:
    """Return the sums (n,) of the links' terms, each times the ratio of the link's motion to that of its driver."""
    joints: list[list[Term]] = [[] for _ in chain.joint_names]
    for i in reversed(range(chain.n_links)):
        joints[chain.drivers[i]] += [Term(float(chain.ratios[i])).times(term) for term in links[i]]
    return [lines.sum(f"{name}{i}", *parts) for i, parts in enumerate(joints)]
