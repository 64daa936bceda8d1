"""Choice of the friction terms of each joint by how well they predict held-out samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.cross_validation import FoldGrams, ForwardSelection, SharedColumnLosses
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.links.link_regularization import FRICTION_WEIGHT
from dynid_ros.information.friction_needs import NEEDS, own_gravity, shows_harmonic, unseen_terms
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import IDENTIFIABLE
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import parameter_spread
from dynid_ros.model.link_columns import LinkColumns

SMOOTHING_FRACTIONS = (0.02, 0.005, 0.05, 0.12)
"""Velocity over which Coulomb friction reverses, as fractions of the joint's RMS velocity. Without the two large
fractions, friction that reverses softly looked as if viscous friction saturated."""
SLIDING_LENGTHS_RAD = (2e-4, 5e-4, 1e-3, 2e-3, 5e-3)
"""Displacement over which Coulomb friction reverses: a UR10e has 2e-4 to 5e-4, a Panda 1e-3 to 2e-3, a KUKA LWR4 2e-3
to 5e-3."""
SLIDING_LENGTHS_M = (5e-5, 2e-4, 5e-4, 1e-3, 2e-3)
"""The same of prismatic joints: ball screws slide within some 1e-5 m, belts and seals within 1e-3 m."""
STRIBECK_FRACTIONS = (0.05, 0.15, 0.4)
"""Stribeck velocities as fractions of the RMS velocity: a grid, since the term is linear except for its velocity."""
SATURATION_FRACTIONS = (2.0,)
"""Saturation velocities as fractions of the RMS velocity."""
HARMONICS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""Waves per turn of a torque that depends on the joint's own angle: cables, eccentric gears, torque sensors."""
PRIOR_WEIGHTS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Weights of the nominal links that are tried; the best one serves all comparisons."""
MIN_GAIN = 0.03
"""Smallest gain, in the logarithm of one joint's squared error, for which a model is changed."""
MIN_GAIN_SE = 1.0
"""Smallest gain in standard errors of the folds: of two models that folds do not distinguish, the simpler one stays."""
MIN_GAIN_SPRING = 0.25
MIN_GAIN_SE_SPRING = 1.5
"""Smallest gain per joint with a new spring, and the largest one at which a spring is taken out again. Along a short
motion a spring resembles a wrong gravity torque or load, and it misleads elsewhere: joints without one simulate gains
up to 0.1. Springs of a tenth of the joint's torque at 1 rad gain 0.7 and more."""
MIN_GAIN_SATURATION = 0.25
MIN_GAIN_SE_SATURATION = 3.0
"""Smallest gain per joint whose viscous term would saturate: friction that the other terms describe badly simulates
gains up to 0.14, and the coefficient at small speeds would be twice as large. Terms that do saturate gain 0.3 and
more."""
MIN_GAIN_RARE = 1.0
MIN_GAIN_SE_RARE = 3.0
"""Smallest gain for properties of few drives: joints that are driven together (the gains of a Stäubli TX40 are 1.9 to
3.7, the smaller one of both joints of other arms up to 0.6), torque that falls with speed (2.8 to 5.9, other arms up to
0.4), and harmonics of the joint's angle (two wrist joints of a KUKA LWR4 1.5 and 2.0, other arms up to 0.4)."""
EQUAL_LOSS_TOLERANCE = 1e-6
"""Largest loss of a simpler model that predicts equally well: a term whose coefficient is zero gains only rounding."""
MAX_PASSES = 2


@dataclass(frozen=True)
class FrictionChoice:
    """Friction of each joint.

    Attributes:
        joints: (n,) friction terms and shapes.
        gains: decrease of the logarithm of the held-out squared error by each joint that did not keep its first model,
            attributed to this joint alone.
        tried: gain of every change of each joint that was tried last, from its model at that time.
    """

    joints: tuple[JointFriction, ...]
    gains: dict[str, float]
    tried: dict[str, dict[str, float]] = field(default_factory=dict)

    def remarks(self, names: Sequence[str]) -> list[str]:
        """Return a sentence for each joint with its terms and the alternatives, given the names of all joints."""
        sentences = []
        for joint, friction in zip(names, self.joints, strict=True):
            decrease = -np.expm1(-self.gains.get(joint, 0.0))
            text = self.alternatives(joint)
            alternatives = f"; others that were tried: {text}" if text else ""
            sentences.append(
                f"friction of {joint}: {', '.join((*friction.terms, *friction.shapes))} (squared error on held-out "
                f"samples {decrease:.1%} lower than with the simplest{alternatives})"
            )
        return sentences

    def alternatives(self, joint: str) -> str:
        """Describe how the best alternative of each kind would change the held-out squared error."""
        best: dict[str, float] = {}
        for change, gain in self.tried.get(joint, {}).items():
            kind = change.partition("=")[0]
            best[kind] = max(gain, best.get(kind, -np.inf))
        return ", ".join(f"{kind} {np.expm1(-gain):+.1%}" for kind, gain in best.items())


@dataclass(frozen=True)
class FrictionMenu:
    """Models that may be tried for a joint: changes of one property each.

    Attributes:
        first: simplest model.
        steps: alternatives of each property.
        own_steps: alternatives of the properties that are never tried for all joints together.
    """

    first: JointFriction
    steps: tuple[tuple[dict, ...], ...]
    own_steps: tuple[tuple[dict, ...], ...] = ()

    @classmethod
    def for_joint(
        cls,
        speed: float,
        span: float = 0.0,
        *,
        prismatic: bool = False,
        own_rotor: bool = True,
        own_angle: bool = True,
    ) -> FrictionMenu:
        """Return the menu of a joint.

        Args:
            speed: RMS velocity, rad/s or m/s.
            span: range of the positions, rad or m.
            prismatic: whether the joint is prismatic.
            own_rotor: whether torques distinguish the rotor from links. If not, the rotor term always stays, or links
                would take its inertia where they cannot have it.
            own_angle: whether torques distinguish a function of the joint's own position from gravity.
        """
        scale = speed if speed > 0 else 1.0
        lengths = SLIDING_LENGTHS_M if prismatic else SLIDING_LENGTHS_RAD
        directions: tuple[dict, ...] = (
            *({"smoothing": _rounded(share * scale), "sliding_length": 0.0} for share in SMOOTHING_FRACTIONS),
            *({"smoothing": 0.0, "sliding_length": length} for length in lengths),
        )
        stribeck = (None, *(_rounded(share * scale) for share in STRIBECK_FRACTIONS))
        saturation = (None, *(_rounded(share * scale) for share in SATURATION_FRACTIONS))
        steps = [
            directions,
            _alternatives("rotor_inertia", (not own_rotor, True)),
            _alternatives("load", (False, True)),
            _alternatives("stribeck_velocity", stribeck),
            _alternatives("saturation_velocity", saturation),
        ]
        if own_angle:
            steps.append(_alternatives("spring", (False, True)))
        seen = [h for h in HARMONICS if shows_harmonic(h, span) and (own_angle or h > 1.0)] if not prismatic else []
        own_steps = (_alternatives("harmonics", ((), *((h,) for h in seen))),) if seen else ()
        return cls(replace(JointFriction(offset=True, rotor_inertia=True), **directions[0]), tuple(steps), own_steps)

    def properties(self, *, alone: bool) -> tuple[tuple[dict, ...], ...]:
        """Return the alternatives of each property that is tried for the joint alone, or for all joints together."""
        return (*self.steps, *self.own_steps) if alone else self.steps

    @property
    def candidates(self) -> list[JointFriction]:
        """Models that contain all terms of all choices: each alternative with each model of the direction."""
        directions = [replace(self.first, **change) for change in self.steps[0]]
        changes = [{}, *(change for step in self.properties(alone=True)[1:] for change in step)]
        return list(dict.fromkeys(replace(model, **change) for model in directions for change in changes))


def _alternatives(name: str, values: Iterable[object]) -> tuple[dict, ...]:
    return tuple({name: value} for value in values)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def friction_menus(robot: RobotModel, speed: NDArray, span: NDArray | float = 0.0) -> list[FrictionMenu]:
    """Return the menu of each joint, given RMS velocities (n,), per s, and ranges of positions (n,), rad or m."""
    rotors = FrictionModel(JointFriction(coulomb=False, viscous=False, offset=True, rotor_inertia=True))
    base = robot.base_parameters(rotors)
    categories = dict(zip(base.names, base.categories, strict=True))
    return [
        FrictionMenu.for_joint(
            float(joint_speed),
            float(joint_span),
            prismatic=bool(prismatic),
            own_rotor=categories[f"rotor_inertia {joint}"] == IDENTIFIABLE,
            own_angle=not bool(gravity),
        )
        for joint, joint_speed, joint_span, prismatic, gravity in zip(
            robot.joint_names,
            speed,
            np.broadcast_to(span, robot.n_joints),
            robot.chain.prismatic,
            own_gravity(robot),
            strict=True,
        )
    ]


def refuse_unseen(
    robot: RobotModel, friction: FrictionModel, stretches: Sequence[Sequence[NDArray]], source: str
) -> None:
    """Refuse given friction terms that a motion cannot show; see `unseen_terms`.

    Plain viscous friction is not refused: a fit reports it as undetermined.

    Args:
        robot: the arm.
        friction: given friction terms.
        stretches: positions, velocities and accelerations (N, n) of consecutive samples.
        source: name of the recordings, for the message.

    Raises:
        IdentificationError: names joint, term and the motion that would show it.
    """
    for unseen in unseen_terms(robot, friction, stretches, NEEDS.keys() - {"viscous"}):
        raise IdentificationError(f"{source}: {unseen}")


class HeldOutLosses:
    """Held-out losses of fits with a quadratic prior towards the nominal parameters.

    The prior is the entropic prior of `ConsistentProblem` to second order, with the best of `PRIOR_WEIGHTS`. Friction
    is drawn towards zero by `FRICTION_WEIGHT`.

    Args:
        columns: all columns.
        grams: normal equations of the folds, of all columns.
        prior: (10 n,) physically possible nominal parameters.
        weight: weight of the prior; None: the best of `PRIOR_WEIGHTS` for the first friction models.

    Attributes:
        weight: weight of the prior.
    """

    def __init__(self, columns: LinkColumns, grams: FoldGrams, prior: NDArray, weight: float | None = None):
        self._columns = columns
        self._grams = grams
        self._known: dict[tuple[JointFriction, ...], NDArray] = {}
        combinations = columns.base.combinations
        self._penalty = np.linalg.inv(combinations @ parameter_spread(prior) @ combinations.T)
        self._center = columns.base.project(prior)
        self._power = grams.factors.relative_power(columns.size)
        first = columns.chosen(columns.first), columns.nonnegative(columns.first)
        self.weight = weight or min(PRIOR_WEIGHTS, key=lambda trial: grams.mean(self._of_weight(*first, trial)))

    def of_joints(self, models: Sequence[Sequence[JointFriction]]) -> NDArray:
        """Return the losses (M, F, n) of M models per fold and joint, given a friction model for each joint.

        A model is computed once: two searches that end with it have equal losses, not only up to rounding.
        """
        keys = [tuple(joints) for joints in models]
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        pairs = [(self._columns.chosen(joints), self._columns.nonnegative(joints)) for joints in new]
        self._known.update(zip(new, self.of_columns(pairs) if pairs else (), strict=True))
        return np.array([self._known[key] for key in keys])

    def of_columns(self, models: Sequence[tuple[NDArray, NDArray]]) -> NDArray:
        """Return the losses (M, F, n) of chosen columns (k,), those of the links first, with masks (k,) of bounds."""
        friction = slice(len(self._center), None)
        return self._shared.losses(
            [
                (chosen[friction], self._friction_penalty(chosen, bounded)[friction], bounded[friction])
                for chosen, bounded in models
            ]
        )

    @cached_property
    def _shared(self) -> SharedColumnLosses:
        """Losses of models whose links are eliminated."""
        return SharedColumnLosses(self._grams, self.weight * self._penalty, self._center)

    def _of_weight(self, chosen: NDArray, bounded: NDArray, weight: float) -> NDArray:
        """Return the losses (F, n) of chosen columns (k,) with a mask (k,) of bounds and a weight of the prior."""
        penalty = np.diag(self._friction_penalty(chosen, bounded))
        center = np.zeros(len(chosen))
        n_base = len(self._center)
        penalty[:n_base, :n_base] = weight * self._penalty
        center[:n_base] = self._center
        return self._grams.losses(chosen, penalty, center, bounded)

    def _friction_penalty(self, chosen: NDArray, bounded: NDArray) -> NDArray:
        return FRICTION_WEIGHT * self._power[chosen] * bounded


def falling_joints(
    columns: LinkColumns, problem: WeightedProblem, stretches: Iterable[Sequence[NDArray]], prior: NDArray
) -> tuple[tuple[str, ...], FoldGrams]:
    """Find joints whose torque falls with speed by more than their Coulomb friction.

    No friction falls like that, but the effort of drivers that leave out their own feed-forward does. The decrease must
    exceed the noise, or joints with hardly any friction would count. It must also predict held-out samples, or joints
    would count whose motion does not distinguish friction from the links.

    Args:
        columns: columns with the first friction models, `first`.
        problem: equations of these columns.
        stretches: positions, velocities and accelerations (N, n).
        prior: (10 n,) physically possible nominal parameters.

    Returns:
        Names of the joints, and the normal equations of the folds.
    """
    fit, noise = problem.weighted()
    grams = FoldGrams(problem.factors, noise)
    names = columns.friction(columns.first).names(columns.robot)
    coefficients = dict(zip(names, fit.solution[columns.n_inertial :], strict=True))
    velocities = [velocity for _, velocity, _ in stretches]
    falling: list[str] = []
    for j, joint in enumerate(columns.robot.joint_names if grams.folds else ()):
        coulomb = coefficients.get(f"coulomb {joint}", 0.0)
        viscous = coefficients.get(f"viscous {joint}", 0.0)
        if not viscous < 0.0 <= coulomb:
            continue  # This holds for nearly all joints and saves the pass over all speeds.
        speed = np.abs(np.concatenate([velocity[:, j] for velocity in velocities]))
        mean_square = np.mean(speed**2)
        if coulomb * speed.mean() + viscous * mean_square >= 0.0 or -viscous * np.sqrt(mean_square) <= noise[j]:
            continue
        bounded = columns.nonnegative(columns.first)
        free = bounded.copy()
        free[columns.n_inertial + names.index(f"viscous {joint}")] = False
        losses = HeldOutLosses(columns, grams, prior)
        before, after = losses.of_columns([(problem.chosen, bounded), (problem.chosen, free)])[:, :, [j]]
        gain, error = grams.gain(before, after)
        if gain > max(MIN_GAIN_RARE, MIN_GAIN_SE_RARE * error):
            falling.append(joint)
    return tuple(falling), grams


def choose_friction(
    columns: LinkColumns, menus: Sequence[FrictionMenu], grams: FoldGrams, prior: NDArray
) -> FrictionChoice:
    """Try each change of the menus and keep those that predict held-out samples better.

    Properties that all joints have in common are surer than those of one joint. But a term that one joint lacks badly
    may look needless once all joints have some other term. So two searches run, and the better result is kept: one
    tries changes for all joints together first and then for each joint, the other only for each joint.

    Args:
        columns: columns with the candidates of the menus.
        menus: (n,) menus of the joints.
        grams: normal equations of the folds, of all columns.
        prior: (10 n,) physically possible nominal parameters.
    """
    first = tuple(menu.first for menu in menus)
    if not grams.folds:
        return FrictionChoice(first, {})
    losses = HeldOutLosses(columns, grams, prior)
    names = columns.robot.joint_names
    together = [list(range(len(menus)))]
    alone = [[j] for j in range(len(menus))]
    searches = []
    for groupings in ([together, alone], [alone]):
        search = _FrictionSearch(menus, grams, losses, first)
        for groups in groupings:
            search.improve_groups(groups)
        searches.append(search)
    best = min(searches, key=lambda search: grams.mean(search.selection.losses))
    return FrictionChoice(
        best.selection.model,
        {names[j]: gain for j, gain in best.gains.items()},
        {name: best.tried[j] for j, name in enumerate(names)},
    )


class _FrictionSearch:
    """Forward selection of friction models.

    Attributes:
        selection: models of all joints and their losses.
        gains: gain of each joint whose model changed, see `FrictionChoice`.
        tried: gains of the changes of each joint, see `FrictionChoice`.
    """

    def __init__(
        self,
        menus: Sequence[FrictionMenu],
        grams: FoldGrams,
        losses: HeldOutLosses,
        first: tuple[JointFriction, ...],
    ):
        self._menus = menus
        self.selection = ForwardSelection(grams, losses.of_joints, first)
        self.gains: dict[int, float] = {}
        self.tried: list[dict[str, float]] = [{} for _ in menus]

    def improve_groups(self, groups: Sequence[Sequence[int]]) -> None:
        """Improve each group of joints in turn while a model changes."""
        for _ in range(MAX_PASSES):
            before = self.selection.model
            for group in groups:
                properties = [self._menus[j].properties(alone=len(group) == 1) for j in group]
                for alternatives in zip(*properties, strict=False):  # some joints have no spring
                    self._improve(group, alternatives)
            if self.selection.model == before:
                break

    def _improve(self, group: Sequence[int], alternatives: Sequence[Sequence[dict]]) -> None:
        """Take the best alternative of one property for some joints together, given the alternatives of each joint."""
        joints = self.selection.model
        changes = []
        models = []
        for change in zip(*alternatives, strict=True):
            changed = list(joints)
            for j, of_joint in zip(group, change, strict=True):
                changed[j] = replace(joints[j], **of_joint)
            if tuple(changed) != joints:
                changes.append(change[0])
                models.append(tuple(changed))
        gains, taken = self.selection.try_models(models, lambda other, error: _required_gain(joints, other, error))
        if len(group) == 1:
            self.tried[group[0]] |= {
                _describe_change(change): float(gain[0]) for change, gain in zip(changes, gains, strict=True)
            }
        if taken is not None:
            for j in group:
                self.gains[j] = self.gains.get(j, 0.0) + float(gains[taken][0]) / len(group)


def _required_gain(joints: Sequence[JointFriction], other: Sequence[JointFriction], error: float) -> float:
    """Return the gain that other models of the joints must exceed, given its standard error; simpler ones need none.

    A spring that would not be taken is left out again: it may have come with those of all joints.

    The rotor does not count as complexity: a drive has a rotor until held-out samples are predicted better without it.
    """
    pairs = list(zip(joints, other, strict=True))
    springs = sum(int(new.spring) - int(old.spring) for old, new in pairs)
    spring_gain = max(abs(springs) * MIN_GAIN_SPRING, MIN_GAIN_SE_SPRING * error)
    if sum(map(_complexity, other)) < sum(map(_complexity, joints)):
        return -spring_gain if springs < 0 else -EQUAL_LOSS_TOLERANCE
    saturating = sum(new.saturation_velocity is not None and old.saturation_velocity is None for old, new in pairs)
    if saturating:
        return max(saturating * MIN_GAIN_SATURATION, MIN_GAIN_SE_SATURATION * error)
    if any(set(new.harmonics) - set(old.harmonics) for old, new in pairs):
        return max(MIN_GAIN_RARE, MIN_GAIN_SE_RARE * error)
    return spring_gain if springs > 0 else max(MIN_GAIN, MIN_GAIN_SE * error)


def _complexity(friction: JointFriction) -> int:
    """Return the number of terms without the rotor's; saturation counts as one."""
    return len(friction.terms) - friction.rotor_inertia + (friction.saturation_velocity is not None)


def _describe_change(change: dict) -> str:
    """Name the properties that a change adds or removes."""
    added = [f"{name}={value}" for name, value in change.items() if value not in (0.0, None, False, ())]
    return ", ".join(added) or f"no {next(iter(change))}"
