"""Which friction terms each joint gets: those that predict best what was not fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.links.link_regularization import FRICTION_WEIGHT
from dynid_ros.information.friction_needs import NEEDS, own_gravity, unseen_terms
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import IDENTIFIABLE
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import parameter_spread
from dynid_ros.model.link_columns import LinkColumns

SMOOTHINGS = (0.02, 0.005, 0.05, 0.12)
"""Velocity over which Coulomb friction reverses, in parts of the joint's RMS velocity. Without the two large ones,
friction that reverses softly looked as if viscous friction saturated."""
SLIDING_LENGTHS = (2e-4, 5e-4, 1e-3, 2e-3, 5e-3)
"""Way over which it reverses, rad: a UR10e has 2e-4 to 5e-4, a Panda 1e-3 to 2e-3, a KUKA LWR4 2e-3 to 5e-3."""
SLIDE_PER_TURN = 0.1
"""Metres of a prismatic joint that count as a radian."""
STRIBECK = (0.05, 0.15, 0.4)
"""Stribeck velocities in parts of the RMS velocity: a grid, since the term is linear but for its velocity."""
SATURATIONS = (2.0,)
"""Saturation velocities, in the same unit."""
LOADS = (False, True)
SPRINGS = (False, True)
WEIGHTS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
WORTH = 0.03
"""Gain in the logarithm of one joint's squared error below which another model is not worth having."""
SURE, SURE_OF_SPRING = 1.0, 1.5
"""Standard errors by which the folds must agree on a gain: the simpler of two models that folds do not distinguish. A
spring needs more, as along a short motion it resembles gravity of a wrong size, and leads astray elsewhere."""
MIN_GAIN_SATURATION, MIN_GAIN_SE_SATURATION = 0.25, 3.0
"""The same of each joint whose viscous term would saturate: friction that the other terms describe badly feigns gains
up to 0.14, and the coefficient at small speeds would be twice as large. Terms that do saturate gain 0.3 and more."""
WORTH_RARE, SURE_RARE = 1.0, 3.0
"""The same for what few drives do: joints that are driven together (a Stäubli TX40's gains are 1.9 to 3.7, the lesser
of both joints' of other arms up to 0.6), torque that falls with speed (2.8 to 5.9, of other arms up to 0.4)."""
ROUNDS = 2
ORDERS = (True, False)
"""Whether all joints together come before each alone."""


@dataclass(frozen=True)
class FrictionChoice:
    """Friction of each joint.

    Attributes:
        joints: (n,) terms.
        gains: for each joint that did not keep its first model, by how much its choice lowered the logarithm of the
            squared error on samples left out, as if all of it were this joint's.
        tried: for each joint the gain that every change, looked at last, would have had from its model then.
    """

    joints: tuple[JointFriction, ...]
    gains: dict[str, float]
    tried: dict[str, dict[str, float]] = field(default_factory=dict)

    def remarks(self, names: Sequence[str]) -> list[str]:
        """What was chosen for each joint, and what else was tried, given the names of all joints."""
        found = []
        for joint, friction in zip(names, self.joints, strict=True):
            lower = -np.expm1(-self.gains.get(joint, 0.0))
            others = f"; others that were tried: {text}" if (text := self.alternatives(joint)) else ""
            found.append(
                f"friction of {joint}: {', '.join((*friction.terms, *friction.shapes))} "
                f"(squared error on samples left out {lower:.1%} "
                f"lower than of the simplest{others})"
            )
        return found

    def alternatives(self, joint: str) -> str:
        """What the best other model of each sort would change of the squared error on samples left out, as text."""
        best: dict[str, float] = {}
        for change, gain in self.tried.get(joint, {}).items():
            sort = change.partition("=")[0]
            best[sort] = max(gain, best.get(sort, -np.inf))
        return ", ".join(f"{sort} {np.expm1(-gain):+.1%}" for sort, gain in best.items())


@dataclass(frozen=True)
class FrictionMenu:
    """What may be tried for a joint: steps from one model to others, each of which changes one thing.

    Attributes:
        first: the simplest.
        steps: for each thing that may be changed, the alternatives.
    """

    first: JointFriction
    steps: tuple[tuple[dict, ...], ...]

    @classmethod
    def of(
        cls, speed: float, *, prismatic: bool = False, own_rotor: bool = True, own_angle: bool = True
    ) -> FrictionMenu:
        """Menu of a joint.

        Args:
            speed: RMS velocity, rad/s or m/s.
            prismatic: whether it is.
            own_rotor: whether torques can distinguish its rotor from links. Without the rotor's term links would have
                its inertia where they cannot, so there it always stays.
            own_angle: whether torque that depends on the joint's own position can be distinguished from gravity.
        """
        scale = speed if speed > 0 else 1.0
        unit = SLIDE_PER_TURN if prismatic else 1.0
        smooth: list[dict[str, Any]] = [
            {"smoothing": _rounded(share * scale), "sliding_length": 0.0} for share in SMOOTHINGS
        ]
        slides: list[dict[str, Any]] = [
            {"smoothing": 0.0, "sliding_length": length * unit} for length in SLIDING_LENGTHS
        ]
        stribeck: list[dict[str, Any]] = [
            {"stribeck_velocity": v} for v in (None, *(_rounded(share * scale) for share in STRIBECK))
        ]
        saturated: list[dict[str, Any]] = [
            {"saturation_velocity": v} for v in (None, *(_rounded(share * scale) for share in SATURATIONS))
        ]
        angle: list[dict[str, Any]] = [{"spring": spring} for spring in SPRINGS]
        loaded: list[dict[str, Any]] = [{"load": load} for load in LOADS]
        rotor: list[dict[str, Any]] = [{"rotor_inertia": rotor} for rotor in (not own_rotor, True)]
        steps = [smooth + slides, rotor, loaded, stribeck, saturated, *([angle] if own_angle else [])]
        return cls(
            replace(JointFriction(offset=True, rotor_inertia=True), **smooth[0]), tuple(tuple(step) for step in steps)
        )

    @property
    def candidates(self) -> list[JointFriction]:
        """Models that have all terms of all choices: the first, and each step's with each direction."""
        directions = [replace(self.first, **change) for change in self.steps[0]]
        changes = [change for step in self.steps[1:] for change in step]
        return list(dict.fromkeys(replace(one, **change) for one in directions for change in ({}, *changes)))

    def changed(self, friction: JointFriction, step: int, number: int) -> JointFriction:
        """The model with one alternative of a step."""
        return replace(friction, **self.steps[step][number])


def friction_menus(robot: RobotModel, speed: NDArray) -> list[FrictionMenu]:
    """Menu of each joint that moves at an RMS velocity (n,), rad/s or m/s."""
    return [
        FrictionMenu.of(float(v), prismatic=bool(prismatic), own_rotor=own_rotor, own_angle=not bool(gravity))
        for v, prismatic, own_rotor, gravity in zip(
            speed, robot.chain.prismatic, _own_rotors(robot), own_gravity(robot), strict=True
        )
    ]


def _own_rotors(robot: RobotModel) -> list[bool]:
    """Whether torques can distinguish each joint's rotor inertia from the links' inertias, whatever the motion."""
    rotors = FrictionModel(JointFriction(coulomb=False, viscous=False, offset=True, rotor_inertia=True))
    base = robot.base_parameters(rotors)
    categories = dict(zip(base.names, base.categories, strict=True))
    return [categories[f"rotor_inertia {joint}"] == IDENTIFIABLE for joint in robot.joint_names]


def refuse_unseen(
    robot: RobotModel, friction: FrictionModel, stretches: Sequence[Sequence[NDArray]], source: str
) -> None:
    """Refuse terms that a motion cannot show, whatever is fitted; see `unseen_terms`.

    Plain viscous friction is not refused: a fit names it as undetermined.

    Args:
        robot: the arm.
        friction: that is asked for.
        stretches: positions, velocities and accelerations (N, n) of consecutive samples.
        source: of the motion, for the message.

    Raises:
        IdentificationError: names joint, term and the motion that would show it.
    """
    for unseen in unseen_terms(robot, friction, stretches, NEEDS.keys() - {"viscous"}):
        raise IdentificationError(f"{source}: {unseen}")


def falling_joints(
    columns: LinkColumns, problem: WeightedProblem, stretches: Iterable[Sequence[NDArray]], prior: NDArray
) -> tuple[tuple[str, ...], FoldGrams]:
    """Names of joints whose torque surely falls with speed by more than Coulomb friction holds, and the folds.

    No friction does, but the effort of some drivers, which lacks what they themselves add. That must be more than the
    noise, or joints would count that have next to no friction; and it must foretell samples left out, or joints would
    whose motion does not tell friction from the links.

    Args:
        columns: with the friction models to begin with, `first`.
        problem: in their columns.
        stretches: positions, velocities and accelerations (N, n).
        prior: (10 n,) possible nominal parameters.
    """
    fit, noise = problem.weighted()
    grams = FoldGrams(problem.factors, noise)
    place = {name: k for k, name in enumerate(columns.friction(columns.first).names(columns.robot), columns.n_inertial)}
    speeds = [qd for _, qd, _ in stretches]
    found: list[str] = []
    for j, joint in enumerate(columns.robot.joint_names if grams.folds else ()):
        coulomb, viscous = (
            0.0 if (term := place.get(f"{name} {joint}")) is None else fit.solution[term]
            for name in ("coulomb", "viscous")
        )
        if not viscous < 0.0 <= coulomb:
            continue  # as of nearly all joints: the speeds of all samples are not looked at
        speed = np.abs(np.concatenate([qd[:, j] for qd in speeds]))
        square = np.mean(speed**2)
        if coulomb * speed.mean() + viscous * square >= 0.0 or -viscous * np.sqrt(square) <= noise[j]:
            continue
        bounded, drawn = columns.nonnegative(columns.first), DrawnLosses(columns, grams, prior)
        free = bounded & (np.arange(len(bounded)) != place[f"viscous {joint}"])
        before, after = (drawn.of_columns(problem.chosen, own)[:, [j]] for own in (bounded, free))
        gain, error = grams.gain(before, after)
        if gain > max(WORTH_RARE, SURE_RARE * error):
            found.append(joint)
    return tuple(found), grams


def choose_friction(
    columns: LinkColumns, menus: Sequence[FrictionMenu], grams: FoldGrams, prior: NDArray
) -> FrictionChoice:
    """Try each step of the menus, first for all joints together, then for each alone, while something improves.

    What all joints have in common is surer than what each has alone; but what one alone does badly without may look
    needless once all have something else, so each is also tried alone from the start, and what predicts better is
    taken. A step is taken if the mean over the folds improves by what it must be worth, and by some standard errors of
    the folds about their mean (SURE): of models that they do not distinguish it is the simpler. Predictions are those
    of `DrawnLosses`.

    Args:
        columns: with the menus' candidates.
        menus: (n,).
        grams: of all columns.
        prior: (10 n,) possible nominal parameters.
    """
    first = tuple(menu.first for menu in menus)
    if not grams.folds:
        return FrictionChoice(first, {})
    drawn = DrawnLosses(columns, grams, prior)
    names = columns.robot.joint_names
    found = []
    for together in ORDERS:
        climb = _Climb(menus, grams, drawn.of, first)
        for groups in ([range(len(menus))], [[j] for j in range(len(menus))])[0 if together else 1 :]:
            climb.up(groups)
        found.append(climb)
    best = min(found, key=lambda climb: grams.mean(climb.losses))
    return FrictionChoice(
        tuple(best.joints),
        {names[j]: gain for j, gain in best.gains.items()},
        {name: best.tried[j] for j, name in enumerate(names)},
    )


class DrawnLosses:
    """Losses on samples left out, of fits with a quadratic prior towards the nominal parameters.

    It is the entropic prior of `ConsistentProblem` to second order, of the best of some weights. Friction is drawn to
    none by FRICTION_WEIGHT.

    Args:
        columns: of which some are fitted.
        grams: of all columns.
        prior: (10 n,) possible nominal parameters.
    """

    def __init__(self, columns: LinkColumns, grams: FoldGrams, prior: NDArray):
        self._columns, self._grams = columns, grams
        base, spread = columns.base.combinations, parameter_spread(prior)
        self._penalty, self._center = np.linalg.inv(base @ spread @ base.T), columns.base.project(prior)
        self._power = grams.factors.relative_power(columns.size)
        first = columns.chosen(columns.first), columns.nonnegative(columns.first)
        self._weight = min(WEIGHTS, key=lambda weight: grams.mean(self.of_columns(*first, weight)))

    def of(self, tried: Sequence[JointFriction]) -> NDArray:
        """(F, n) per fold and joint, of a model for each joint."""
        return self.of_columns(self._columns.chosen(tried), self._columns.nonnegative(tried))

    def of_columns(self, chosen: NDArray, nonnegative: NDArray, weight: float | None = None) -> NDArray:
        """(F, n) of columns (k,), those of the links first, of which some coefficients cannot be negative."""
        full, middle = np.diag(FRICTION_WEIGHT * self._power[chosen] * nonnegative), np.zeros(len(chosen))
        n_base = len(self._center)
        full[:n_base, :n_base], middle[:n_base] = (weight or self._weight) * self._penalty, self._center
        return self._grams.losses(chosen, full, middle, nonnegative)


class _Climb:
    """One search: takes the best alternative of a step while that improves.

    Attributes:
        joints: models now.
        losses: (F, n) of them.
        gains, tried: by joint, see `FrictionChoice`.
    """

    def __init__(
        self,
        menus: Sequence[FrictionMenu],
        grams: FoldGrams,
        losses: Callable[[Sequence[JointFriction]], NDArray],
        first: Sequence[JointFriction],
    ):
        self._menus, self._grams, self._losses_of = menus, grams, losses
        self.joints, self.losses = list(first), losses(first)
        self.gains: dict[int, float] = {}
        self.tried: list[dict[str, float]] = [{} for _ in menus]

    def up(self, groups: Sequence[Sequence[int]]) -> None:
        """Improve each group of joints in turn, while something does."""
        for _ in range(ROUNDS):
            before = list(self.joints)
            for group in groups:
                for step in range(min(len(self._menus[j].steps) for j in group)):
                    self._improve(group, step)
            if self.joints == before:
                break

    def _improve(self, group: Sequence[int], step: int) -> None:
        """Take the best alternative of a step for some joints together."""
        options = []
        for number in range(len(self._menus[group[0]].steps[step])):  # all menus have as many, but for a last step
            other = list(self.joints)
            for j in group:
                other[j] = self._menus[j].changed(self.joints[j], step, number)
            if other != self.joints:
                found = self._losses_of(other)
                gain, error = self._grams.gain(self.losses, found)
                # A drive has a rotor until samples left out are surely predicted better without it.
                simpler = sum(map(_complexity, other)) < sum(map(_complexity, self.joints))
                least = 0.0 if simpler else _required_gain(self.joints, other, error)
                options.append((gain, gain - least, number, other, found))
        if len(group) == 1:
            own = self._menus[group[0]].steps[step]
            self.tried[group[0]] |= {_text(own[number]): gain for gain, _, number, *_ in options}
        if not options:
            return
        gain, enough, _, other, found = max(options, key=lambda option: option[1])
        if enough > 0.0:
            for j in group:
                self.gains[j] = self.gains.get(j, 0.0) + gain / len(group)
            self.joints, self.losses = other, found


def _required_gain(joints: Sequence[JointFriction], other: Sequence[JointFriction], error: float) -> float:
    """Return the gain that other models of the joints must have, given its standard error."""
    pairs = list(zip(joints, other, strict=True))
    saturating = sum(new.saturation_velocity is not None and old.saturation_velocity is None for old, new in pairs)
    if saturating:
        return max(saturating * MIN_GAIN_SATURATION, MIN_GAIN_SE_SATURATION * error)
    sprung = any(new.spring > old.spring for old, new in pairs)
    return max(WORTH, (SURE_OF_SPRING if sprung else SURE) * error)


def _complexity(friction: JointFriction) -> int:
    """Return the number of terms besides the rotor's; saturation counts as one."""
    return len(friction.terms) - friction.rotor_inertia + (friction.saturation_velocity is not None)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _text(change: dict) -> str:
    """What a change adds, or takes away."""
    added = [f"{name}={value}" for name, value in change.items() if value not in (0.0, None, False)]
    return ", ".join(added) or f"no {next(iter(change))}"
