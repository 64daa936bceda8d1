"""Result of a load identification: body, intervals, sensor biases, undetermined parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.display import percent
from dynid_ros.estimation.estimate import CONFIDENCE_LEVEL, BaseEstimate, half_width, interval
from dynid_ros.estimation.least_squares import standard_errors_of
from dynid_ros.estimation.rank import half_inverse
from dynid_ros.identification.physical_consistency import solve_consistent
from dynid_ros.identification.result import Result
from dynid_ros.identification.wrench_frame import SENSOR_AXES, TURN, WRENCH_UNITS
from dynid_ros.identified.identified_file import as_number
from dynid_ros.identified.load import load_section
from dynid_ros.identified.validation import Validation
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import ball
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import AXIS_PAIRS, LOAD_NAMES, PARAMETERS_PER_LINK, STATIC, LoadBody, skew, transformed

LEVEL_OF_NEGATIVE_MASS = 0.99
"""Level of the interval of a mass below zero from which on chance does not explain it: without a load one 95 % interval
in forty lies below zero, and one in two hundred of these."""


@dataclass(frozen=True, eq=False, repr=False)
class LoadResult(Result):
    """A load fixed to the tip of an arm; see `LoadIdentification`. Its frame is that of the tip link.

    Attributes:
        robot: the arm, with the tip that the load is fixed to.
        estimate: estimates by the data alone: four or ten parameters of the load, then bias, offsets and friction.
        solution: complete solution (k,), which is arbitrary along undetermined directions.
        condition_number: condition number of the weighted equations with unit columns; infinite if rank-deficient.
        channels: names of the measured channels: joints, or axes of a wrench.
        residual_rms: residual (c,) of each channel, N m or N.
        signal_rms: fitted signal (c,) of each channel, N m or N.
        faults: faults of the sensor, whose readings were corrected; such a result has no driver settings.
        arm: content of the arm's `identified.yaml`, to which the load is added; None: the file holds the load alone.
        arm_missing: sentences on what is not determined of an arm that was identified along with the load.
        fitted: `LoadEvidence` of the equations that were fitted; None: they were not kept.
    """

    robot: RobotModel
    estimate: BaseEstimate
    solution: NDArray
    condition_number: float
    channels: tuple[str, ...]
    residual_rms: NDArray
    signal_rms: NDArray
    n_samples: int
    sources: tuple[str, ...]
    settings: dict
    remarks: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    arm: dict | None = None
    arm_missing: tuple[str, ...] = ()
    fitted: Any = None

    @property
    def frame(self) -> str:
        """Link whose frame the numbers refer to."""
        return self.robot.tip

    @property
    def n_load(self) -> int:
        """Number of load parameters: 4 of a static identification, 10 from motion."""
        return sum(name in LOAD_NAMES for name in self.estimate.names)

    @cached_property
    def body(self) -> LoadBody:
        """Body by the data alone; NaN for undetermined parameters."""
        n = self.n_load
        parameters, covariance = np.full(PARAMETERS_PER_LINK, np.nan), np.zeros((PARAMETERS_PER_LINK,) * 2)
        parameters[:n], covariance[:n, :n] = self.estimate.values[:n], self.estimate.covariance[:n, :n]
        return LoadBody(parameters, covariance)

    @cached_property
    def parameters(self) -> NDArray:
        """Parameters (10,) of a physically consistent body, about the frame's origin; inertia is NaN without motion.

        They are zero if the data exclude a load, and NaN if they do not determine its mass.
        """
        if not np.isfinite(self.estimate.values[:STATIC]).all():
            return np.full(PARAMETERS_PER_LINK, np.nan)
        if not self.is_loaded:
            return np.zeros(PARAMETERS_PER_LINK)
        n = self.n_load
        found = possible_load(self.solution[:n], self.estimate.covariance[:n, :n])
        if n == STATIC or not np.isfinite(self.estimate.values[:n]).all():
            found[STATIC:] = np.nan
        return found

    @property
    def mass(self) -> float:
        """Mass of `parameters`, kg, or by the data alone if no load is shown; NaN if it is not determined."""
        return float(self.parameters[0]) if self.is_loaded else self.body.mass

    @property
    def center(self) -> NDArray:
        """Centre of mass (3,) in the frame, m; NaN without a load."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.parameters[1:4] / self.parameters[0]

    @cached_property
    def possible(self) -> LoadBody:
        """Body of `parameters` with the covariance of the estimate."""
        return LoadBody(self.parameters, self.body.covariance)

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (10,); NaN for undetermined parameters."""
        return np.where(np.isfinite(self.body.parameters), np.sqrt(np.diag(self.body.covariance)), np.nan)

    def confidence_intervals(self, level: float = CONFIDENCE_LEVEL) -> NDArray:
        """Return the intervals (10, 2) by the data alone; NaN for undetermined parameters."""
        found = np.full((PARAMETERS_PER_LINK, 2), np.nan)
        found[: self.n_load] = self.estimate.confidence_intervals(level)[: self.n_load]
        return found

    @property
    def unknown_inertia_reason(self) -> str:
        """Reason why the inertia is unknown, where it is."""
        return "the arm was at rest" if self.n_load == STATIC else "the motion does not determine all of it"

    @property
    def inertia_freedom(self) -> float:
        """Degrees of freedom of the inertia: the smallest of its parameters; NaN if the arm was at rest."""
        return float(np.min(self.estimate.dof[STATIC : self.n_load], initial=np.inf))

    def center_intervals(self, level: float = CONFIDENCE_LEVEL) -> NDArray:
        """Return the intervals (3, 2) of the centre of mass, m."""
        return interval(self.body.center, self.body.center_errors, self.estimate.dof[1:STATIC], level)

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentences on undetermined parameters, and on recordings that would determine them."""
        return (*self.arm_missing, *self._load_missing())

    def _load_missing(self) -> tuple[str, ...]:
        if self.confidence_intervals(LEVEL_OF_NEGATIVE_MASS)[0, 1] < 0:
            return (
                f"{', '.join(self.sources)}: the mass of the load comes out below zero; the arm carried more when it "
                "was identified, its friction, offsets or gains were others, or its joints move too alike to tell mass "
                "from place: identify it as it is now, and turn the joints near the load one by one",
            )
        open_ = np.isnan(self.body.parameters[: self.n_load])
        unknown = [name for name, is_open in zip(LOAD_NAMES, open_, strict=False) if is_open]
        if not unknown or not (self.is_loaded or "m" in unknown):
            return ()
        cannot_tilt = np.all(GravityModel(self.robot).unobservable_axes() | self.robot.chain.prismatic)
        remedy = (
            "record a motion that turns it about several axes, fast and to both sides, with dwells in which it points "
            "in several directions"
        )
        if cannot_tilt:
            remedy = "the joints of this arm cannot tilt the load, so no motion shows what a tilt would"
        return (f"{', '.join(self.sources)}: {', '.join(unknown)} of the load are not determined; {remedy}",)

    @property
    def is_loaded(self) -> bool:
        """Whether the interval of the mass is above zero."""
        return bool(self.confidence_intervals()[0, 0] > 0)

    @property
    def nuisance(self) -> dict[str, tuple[float, float]]:
        """Value and standard error of the other estimates: bias of a sensor, offsets, friction."""
        rows = zip(self.estimate.names, self.estimate.values, self.estimate.standard_errors, strict=True)
        return {name: (float(value), float(error)) for name, value, error in list(rows)[self.n_load :]}

    def in_last_link(self) -> NDArray:
        """Return `parameters` (10,) about the frame of the last moving link, to which they add; NaN if not known."""
        known = transformed(np.nan_to_num(self.parameters), self.robot.tip_offset)
        if np.isnan(self.parameters[0]):
            return np.full(PARAMETERS_PER_LINK, np.nan)
        if np.isnan(self.parameters[STATIC:]).any():
            known[STATIC:] = np.nan
        return known

    @property
    def names(self) -> tuple[str, ...]:
        """Names (10,) of `parameters`."""
        return LOAD_NAMES

    def verdict(self, validations: Sequence[Validation] = ()) -> str:
        """Say how heavy the load is, how sure that is, and how much of the signal it explains."""
        low, high = self.confidence_intervals()[0]
        left = np.linalg.norm(self.residual_rms) / np.linalg.norm(self.signal_rms)
        if validations:  # many joints hardly feel the load, so its signal counts as a whole
            unseen = validations[0]
            left = np.linalg.norm(unseen.rms) / np.linalg.norm(unseen.rms / unseen.relative_rms)
        agreement = f"{percent(left)} of the {'unseen' if validations else 'fitted'} signal is left"
        if not self.is_loaded:
            return f"No load is shown at {self.frame}; {agreement}."
        mass = self.mass if np.isfinite(self.mass) else self.body.mass
        return f"The load at {self.frame} weighs {mass:.3f} kg (95 %: {low:.3f} to {high:.3f}); {agreement}."

    def joint_table(self, _validations: Sequence[Validation] = ()) -> list[str]:
        """Return mass, centre and principal moments with their 95 % intervals, and the bias of a wrist sensor."""
        return [*_body_lines(self), *_bias_lines(self)]

    def further_lines(self) -> list[str]:
        """Return the residual and the fitted signal of each channel."""
        rms = "  ".join(
            f"{channel} {value:.3g}/{size:.3g}"
            for channel, value, size in zip(self.channels, self.residual_rms, self.signal_rms, strict=True)
        )
        return [f"  residual/load RMS: {rms} ({self.n_samples} samples, condition {self.condition_number:.3g})"]

    def _line(self) -> str:
        return f"{self.mass:.4g} kg at {self.frame}, condition {self.condition_number:.3g}"

    def sections(self) -> dict:
        """Return the section `load`, and `force_sensor` of a load that a wrist sensor weighed."""
        sensor = {"force_sensor": _sensor_section(self)} if self.settings.get("source") == "wrench" else {}
        return {"load": section_of_load(self), **sensor}

    def document(self) -> dict:
        """Return the content of `identified.yaml`, faults of the sensor among the remarks."""
        return super().document() | {"remarks": [*self.faults, *self.remarks]}

    def merged(self, content: dict) -> dict:
        """Return the arm's content with the load, whose section keeps its source and remarks."""
        kept = ("source", "condition_number", "remarks", *([self.VALIDATION] if content[self.VALIDATION] else []))
        sensor = {"force_sensor": content["force_sensor"]} if "force_sensor" in content else {}
        load = content["load"] | {name: content[name] for name in kept}
        return {**(self.arm or {}), "load": load, **sensor}


def section_of_load(result: LoadResult) -> dict:
    """Return the section `load` of `identified.yaml`."""
    return load_section(
        result.frame,
        result.possible,
        result.body,
        loaded=result.is_loaded,
        dof=result.estimate.dof[: result.n_load],
        mass_interval=result.confidence_intervals()[0],
        center_intervals=result.center_intervals(),
        nuisance=result.nuisance,
        residual_rms=dict(zip(result.channels, result.residual_rms, strict=True)),
    )


def _body_lines(result: LoadResult) -> list[str]:
    """Return lines on mass, centre and principal moments with their 95 % intervals."""
    low, high = result.confidence_intervals()[0]
    if np.isnan(result.body.mass):
        lines = ["  mass      not shown by these data"]
    else:
        mass = result.mass if np.isfinite(result.mass) else result.body.mass  # known, though its place is not
        lines = [f"  mass      {mass:9.4f} kg       95 %: {low:.4f} to {high:.4f}"]
    if result.is_loaded:
        lines += _center_and_moments(result)
    elif high < 0.0:
        lines.append("  no load is shown: the interval of the mass lies below zero")
    elif np.isfinite(high):
        lines.append(f"  no load is shown: the interval of the mass holds zero; up to {high:.3g} kg may be there")
    return lines


def sensor_biases(result: LoadResult) -> Iterator[dict[str, tuple[float, float, float]]]:
    """Yield value, standard error and half 95 % interval of the bias of each axis, per recording.

    A bias is the reading without load, N or N m, with the sign of the readings and in the axes of the sensor; the bias
    of a sensor that drifts is its mean over the recording. The fit is in the axes of the tip, so that its bias b is
    turned back: by the turn R of the sensor and by the small rest δ of it, Rᵀ (b + b × δ).
    """
    sign = -1.0 if result.settings.get("wrench_convention") == "load_on_sensor" else 1.0
    estimate = result.estimate
    to_sensor = Rotation.from_rotvec(result.settings.get("sensor_turn") or np.zeros(3)).inv().as_matrix()
    turned_back = np.kron(np.eye(2), to_sensor)
    turns = [k for k, name in enumerate(estimate.names) if name in TURN]
    for first in (k for k, name in enumerate(estimate.names) if name.startswith(f"bias of {SENSOR_AXES[0]}")):
        rows = first + np.arange(len(SENSOR_AXES))
        jacobian = np.zeros((len(SENSOR_AXES), len(estimate.names)))
        jacobian[:, rows] = np.eye(len(SENSOR_AXES))
        if any(name.startswith("drift 2") for name in estimate.names):
            # The mean of t² over a recording, in which t runs from -1 to 1.
            jacobian[:, rows + 2 * len(SENSOR_AXES)] = np.eye(len(SENSOR_AXES)) / 3.0
        bias = jacobian @ estimate.values
        if turns:
            jacobian[:, turns] = np.concatenate([skew(bias[:3]), skew(bias[3:])])
            bias = jacobian @ estimate.values
        errors = standard_errors_of(turned_back @ jacobian, estimate.covariance)
        halves = half_width(errors, estimate.dof[rows].min())
        values = sign * (turned_back @ bias)
        yield {
            axis: (float(value), float(error), float(half))
            for axis, value, error, half in zip(SENSOR_AXES, values, errors, halves, strict=True)
        }


def _bias_lines(result: LoadResult) -> Iterator[str]:
    biases = list(sensor_biases(result))
    for number, bias in enumerate(biases, 1):
        texts = [
            f"{axis} {value:.3g} ± {half:.2g} {unit}"
            for (axis, (value, _, half)), unit in zip(bias.items(), WRENCH_UNITS, strict=True)
        ]
        which = f", recording {number}" if len(biases) > 1 else ""
        yield f"  bias of the sensor{which}: {', '.join(texts)}"


def _sensor_section(result: LoadResult) -> list[dict]:
    """Return the section `force_sensor`, with an entry per recording."""
    return [
        {
            "recording": source,
            "bias": {axis: as_number(value) for axis, (value, _, _) in bias.items()},
            "bias_std": {axis: as_number(error) for axis, (_, error, _) in bias.items()},
        }
        for source, bias in zip(result.sources, sensor_biases(result), strict=True)
    ]


def _center_and_moments(result: LoadResult) -> list[str]:
    lines = []
    center = np.where(np.isfinite(result.center), result.center, result.body.center)
    for name, value, (low, high) in zip("xyz", center, result.center_intervals(), strict=True):
        known = f"{1e3 * value:9.2f} mm       95 %: {1e3 * low:.2f} to {1e3 * high:.2f}"
        lines.append(f"  centre {name}  {known if np.isfinite(value) else 'not determined'}")
    body = result.possible
    if np.isnan(body.moments).any():
        return [*lines, f"  inertia   not known: {result.unknown_inertia_reason}"]
    halves = half_width(body.moment_errors, result.inertia_freedom)
    for i, (moment, half) in enumerate(zip(body.moments, halves, strict=True), 1):
        axis = ", ".join(f"{c:.2f}" for c in body.axes[:, i - 1])
        lines.append(f"  moment {i}  {moment:9.5f} kg m^2   ± {half:.5f} (95 %), about ({axis})")
    return lines + list(alike(result))


def alike(result: LoadResult) -> Iterable[str]:
    """Yield a sentence on principal moments that are too close for their axes to be meaningful."""
    body = result.possible
    pairs = [f"{i + 1} and {j + 1}" for i, j in body.alike]
    if pairs:
        turns = [body.axis_errors[AXIS_PAIRS.index(pair)] for pair in body.alike]
        sizes = [f"± {np.degrees(turn):.0f}°" if turn < np.pi / 2 else "any direction" for turn in turns]
        yield (
            f"  moments {', '.join(pairs)} are too close to each other for their axes to mean anything "
            f"({', '.join(sizes)})"
        )


# Physically consistent body nearest to the estimate, regularized towards a ball of its mass.


MIN_BALL_MASS_KG = 1e-3
MAX_BALL_DISTANCE_M = 1.0
"""Largest distance of the ball from the frame in each direction."""
BALL_WEIGHT = 1.0
"""Weight of the ball, like one observation of each second moment to about its own size."""
MIN_EIGENVALUE = 1e-12
"""Smallest eigenvalue of a correlation matrix above rounding."""


def possible_load(solution: NDArray, covariance: NDArray) -> NDArray:
    """Return the parameters (10,) of the physically consistent body that fits best.

    Minimises ½ (x − x̂)ᵀ C⁻¹ (x − x̂) + `BALL_WEIGHT` · divergence from the ball, see `consistency`.

    Args:
        solution: (k,) first k of the ten parameters, as estimated.
        covariance: (k, k); it is singular where the data leave something open, which then is as in the ball.
    """
    matrix = half_inverse(covariance, MIN_EIGENVALUE).T
    regressor = np.zeros((len(matrix), PARAMETERS_PER_LINK))
    regressor[:, : len(solution)] = matrix
    mass = max(float(solution[0]), MIN_BALL_MASS_KG)
    about = ball(mass, np.clip(solution[1:4] / mass, -MAX_BALL_DISTANCE_M, MAX_BALL_DISTANCE_M))
    return solve_consistent(regressor, matrix @ solution, about, BALL_WEIGHT, link_names=["load"]).solution
