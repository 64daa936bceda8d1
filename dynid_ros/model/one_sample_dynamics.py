"""Inverse dynamics of one sample as straight-line code: Newton and Euler's recursion on terms instead of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model.chain import Chain
from dynid_ros.model.generated_code import DIRECTION_DECIMALS, Lines, Term, link_numbers, variable
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.one_sample_regressor import motion_lines
from dynid_ros.model.regressor import N_FEATURES, WRENCH


def inverse_dynamics_lines(
    lines: Lines, chain: Chain, gravity: NDArray, parameters: NDArray, load: Sequence[Term] = ()
) -> list[Term]:
    """Add lines that make up the torques, and return these (n,).

    They use q0, v0 and a0 of the first joint, its s0 and c0, sine and cosine, and so on; of prismatic joints these two
    are not used. A wrench is linear in accelerations and products of angular velocities (Atkeson, An and Hollerbach
    1986, eq. 8), and what the links exert is turned from frame to frame towards the base.

    Args:
        lines: which are added to.
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
        parameters: (m, 10) about the link frames.
        load: ten terms, parameters of a load about the frame of the tip link; none: no load.
    """
    features = [link[:N_FEATURES] for link in motion_lines(lines, chain, gravity)]
    wrenches = _summed_wrenches(lines, chain, parameters, load, features)
    return _along_joints(lines, "J", chain, [_along(chain, i, *wrench) for i, wrench in enumerate(wrenches)])


def momentum_lines(
    lines: Lines, chain: Chain, parameters: NDArray, load: Sequence[Term] = ()
) -> tuple[list[Term], list[Term]]:
    """Add lines that make up momentum and what changes it besides torques and gravity; return both (n,).

    With the mass matrix M and Christoffel's C they are M q̇ and Cᵀ q̇ = ½ ∂(q̇ᵀ M q̇)/∂q, so that Mq̇ has the time
    derivative τ + Cᵀ q̇ - g (De Luca and Mattone 2003, eq. 6). The links beyond a joint have the momentum h = (l, k) in
    its frame; the joint, of screw s, gets s·h of it. Turned by the joint, these links' velocity V changes by V × s, and
    their energy by h·(V × s).

    Args:
        lines: which are added to; they use q0 and v0 of the first joint, its s0 and c0, and so on.
        chain: the arm.
        parameters: (m, 10) about the link frames.
        load: as of `inverse_dynamics_lines`.
    """
    features = [link[:6] for link in motion_lines(lines, chain, np.zeros(3), velocities=True)]
    still = [Term(0.0)] * (N_FEATURES - 6)
    momenta = _summed_wrenches(lines, chain, parameters, load, [[*velocity, *still] for velocity in features])
    changes = []
    for i, ((v, w), (linear, angular)) in enumerate(zip([(f[:3], f[3:]) for f in features], momenta, strict=True)):
        pairs = [(linear, w)] if chain.slides[i] else [(angular, w), (linear, v)]
        changes.append([term for h, u in pairs for term in (h[0].times(u[1]), -h[1].times(u[0]))])
    along = [_along(chain, i, *momentum) for i, momentum in enumerate(momenta)]
    return _along_joints(lines, "P", chain, along), _along_joints(lines, "E", chain, changes)


def _along(chain: Chain, link: int, force: Sequence[Term], moment: Sequence[Term]) -> list[Term]:
    return [force[2] if chain.slides[link] else moment[2]]


def _along_joints(lines: Lines, name: str, chain: Chain, links: Sequence[Sequence[Term]]) -> list[Term]:
    """Sums (n,) over the links that each joint moves, of terms of each link."""
    joints: list[list[Term]] = [[] for _ in chain.joint_names]
    for i in reversed(range(chain.n_links)):
        joints[chain.drivers[i]] += [Term(float(chain.ratios[i])).times(term) for term in links[i]]
    return [lines.sum(f"{name}{i}", *parts) for i, parts in enumerate(joints)]


def _summed_wrenches(
    lines: Lines, chain: Chain, parameters: NDArray, load: Sequence[Term], features: Sequence[Sequence[Term]]
) -> list[tuple[list[Term], list[Term]]]:
    """Force and moment of each link with all that follow it, in its joint frame; or momenta, of features as those."""
    bodies = transformed(parameters, chain.link_offsets)
    numbers = link_numbers(Lines(), chain)
    terms = [[Term(float(x)) for x in body] for body in bodies]
    if load:
        terms[chain.tip_link] = _carried_terms(lines, chain, bodies[chain.tip_link], load)
    wrenches = [_wrench(lines, f"W{i}", *pair) for i, pair in enumerate(zip(terms, features, strict=True))]
    for i in reversed(range(chain.n_links)):
        force, moment = wrenches[i][:3], wrenches[i][3:]
        if chain.parents[i] < 0:
            continue
        rotation, arm = chain.transforms[i][:3, :3], [Term(float(x)) for x in chain.transforms[i][:3, 3]]
        if chain.slides[i]:
            along = np.round(rotation[:, 2], DIRECTION_DECIMALS)
            slide = variable(f"q{numbers[i]}")
            arm = [
                lines.sum(f"A{i}{x}", part, Term(float(c)).times(slide))
                for x, part, c in zip("xyz", arm, along, strict=True)
            ]
        else:
            cos, sin = variable(f"c{numbers[i]}"), variable(f"s{numbers[i]}")
            force, moment = (lines.turned(f"{x}{i}", cos, sin, v) for x, v in (("T", force), ("U", moment)))
        force, moment = (lines.rotated(f"{x}{i}", rotation, v) for x, v in (("R", force), ("S", moment)))
        before = wrenches[chain.parents[i]]
        wrenches[chain.parents[i]] = [
            *(lines.sum(f"F{i}{x}", before[k], force[k]) for k, x in enumerate("xyz")),
            *(
                lines.sum(f"M{i}{x}", before[3 + k], moment[k], arm[j].times(force[m]), -arm[m].times(force[j]))
                for k, x, j, m in ((0, "x", 1, 2), (1, "y", 2, 0), (2, "z", 0, 1))
            ),
        ]
    return [(wrench[:3], wrench[3:]) for wrench in wrenches]


def _carried_terms(lines: Lines, chain: Chain, body: NDArray, load: Sequence[Term]) -> list[Term]:
    """Ten terms, the parameters of a body (10,) and a load about the joint frame of the last link before the tip."""
    pose = chain.link_offsets[chain.tip_link] @ chain.tip_offset
    matrix = np.round(transformed(np.eye(PARAMETERS_PER_LINK), pose).T, DIRECTION_DECIMALS)
    return [
        lines.sum(f"B{k}", Term(float(own)), *(Term(float(c)).times(part) for c, part in zip(row, load, strict=True)))
        for k, (own, row) in enumerate(zip(body, matrix, strict=True))
    ]


def _wrench(lines: Lines, name: str, body: Sequence[Term], features: Sequence[Term]) -> list[Term]:
    """Force and moment, six terms, that move a body of ten terms; constants that share a feature are one."""
    found = []
    for k in range(WRENCH.shape[1]):
        terms = []
        for f in range(N_FEATURES):
            parts = [
                Term(float(WRENCH[p, k, f]) * body[p].factor, body[p].variables)
                for p in np.flatnonzero(WRENCH[:, k, f]).tolist()
            ]
            constant = Term(float(sum(part.factor for part in parts if not part.variables)))
            terms += [part.times(features[f]) for part in (constant, *(part for part in parts if part.variables))]
        found.append(lines.sum(f"{name}{k}", *terms))
    return found
