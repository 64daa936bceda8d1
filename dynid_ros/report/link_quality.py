"""Agreement of measured torque with the identified model and with the URDF, and the section of reports on friction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from dynid_ros.files.disk_arrays import pick_rows
from dynid_ros.identification.link_prediction import predict_with
from dynid_ros.identified.identified_file import is_number
from dynid_ros.identified.joint_friction import DIRECTIONS
from dynid_ros.identified.links import LinkModel
from dynid_ros.identified.validation import Validation, validate_torque
from dynid_ros.model.friction_terms import COUPLING_TERMS, TERM_KINDS, JointFriction, acts_at_standstill
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import LIGHT, Plot, plot_area, split_at_gaps, spread_indices, svg
from dynid_ros.report.formats import UNKNOWN_TEXT, JointUnits, brief, counted, joint_units, listed, significant
from dynid_ros.report.page import Cell, Figures, Section, Table
from dynid_ros.report.result_page import cell_unit, entries_of, joints_of, with_interval
from dynid_ros.signals import LowPass, Motion

MAX_REPEATED_DISTANCE = 0.1
"""Largest distance between motions, over their spread, that counts as a repetition. The distance of two runs of one
trajectory is about 0.003, that of another trajectory of the same style 0.5."""
MAX_DISTANCE_SAMPLES = 3000
"""Largest number of samples whose distance is computed."""
MAX_LAG_S = 2.0
"""Longest lag of the autocorrelation, s."""
MAX_OUTSIDE_FRACTION = 0.1
"""Largest fraction of the lags outside the 95 % band for residuals that count as sensor noise."""
FILTER_SAMPLES = 1 << 14
"""Smallest number of samples for the impulse response of the low-pass."""
CORRELATION_WIDTH = 210
CORRELATION_HEIGHT = 130
FAMILIES = {
    "torque": ("Friction and offset", "N m"),
    **{family: (kind.label, kind.unit) for family, kind in TERM_KINDS.items()},
}
"""Heading and unit for revolute joints, by the family of the terms."""
SIDES = {"positive": "+", "negative": "−"}
"""Sign in the table by the suffix of a term that acts in one direction."""
SHAPE_NAMES = {
    "stribeck_velocity": ("Stribeck velocity", "velocity"),
    "saturation_velocity": ("saturation velocity", "velocity"),
    "smoothing": ("reverses within", "velocity"),
    "sliding_length": ("sliding length", "position"),
    "dead_zone": ("no direction below", "velocity"),
}
"""Name and field of `JointUnits` by the key of the shape parameter of friction."""
CURVE_WIDTH = 210
CURVE_HEIGHT = 160


@dataclass(frozen=True, eq=False)
class TorqueComparison:
    """Measured and predicted torques of one recording, filtered by the same low-pass and decimated.

    Attributes:
        recording: name of the recording.
        time: (M,) s.
        motion: position, velocity and acceleration at these times, (M, n) each.
        measured: (M, n) measured torque, N m or N.
        identified: (M, n) torque of the identified model.
        urdf: (M, n) torque of the links of the URDF with fitted friction; None: unknown.
        rate: sampling rate before decimation, Hz.
    """

    recording: str
    time: NDArray
    motion: Motion
    measured: NDArray
    identified: NDArray
    urdf: NDArray | None
    rate: float

    @classmethod
    def from_recording(
        cls, model: LinkModel, recording: Recording, urdf_model: LinkModel | None = None
    ) -> TorqueComparison:
        """Predict the torque of a recording.

        Raises:
            RecordingError: the recording lacks a joint of the robot.
            IdentificationError: the recording has no torque or is too short.
        """
        models = [model] if urdf_model is None else [model, urdf_model]
        prediction = predict_with(models, recording)
        time = prediction.time
        parts = []
        for segment in prediction.segments:
            inside = time[(time >= segment.time[0]) & (time <= segment.time[-1])]
            rows = np.searchsorted(segment.time, inside)
            parts.append([pick_rows(values, rows) for values in segment.motion])
        motion = Motion(*(np.concatenate(values) for values in zip(*parts, strict=True)))
        identified, *urdf = prediction.predicted
        rate = prediction.segments[0].rate
        return cls(recording.source, time, motion, prediction.measured, identified, urdf[0] if urdf else None, rate)

    @property
    def residual(self) -> NDArray:
        """(M, n) measured minus identified torque."""
        return self.measured - self.identified

    @property
    def period(self) -> float:
        """Sampling period after decimation, s."""
        return float(np.median(np.diff(self.time))) if len(self.time) > 1 else 1 / self.rate


@dataclass(frozen=True, eq=False)
class LinkQuality:
    """Agreement of measured torque with the identified model and with the URDF.

    Attributes:
        shown: recordings on which the model is evaluated: those that were not fitted, or else the fitted ones.
        evidence: description of these recordings.
        is_validated: whether they were not fitted; None: unknown.
        repeats_fit: whether they repeat the fitted motion.
        model: agreement of the identified model on `shown`.
        urdf: agreement of the URDF on `shown`, with friction fitted to the same data; None: unknown.
        fit: agreement of the identified model on the fitted recordings; None: unknown.
        torque_rms: (n,) RMS of the measured torque in `shown`, N m or N.
    """

    shown: tuple[TorqueComparison, ...]
    evidence: str
    is_validated: bool | None
    repeats_fit: bool
    model: Validation
    urdf: Validation | None
    fit: Validation | None
    torque_rms: NDArray

    @classmethod
    def from_comparisons(
        cls,
        joints: Sequence[str],
        fitted: Sequence[TorqueComparison],
        unseen: Sequence[TorqueComparison] = (),
        given: Sequence[TorqueComparison] = (),
    ) -> LinkQuality:
        """Evaluate the models on the recordings that were not fitted, or else on the fitted ones.

        Args:
            joints: names of the joints.
            fitted: recordings that were fitted.
            unseen: recordings that were not fitted.
            given: recordings that replace both, if it is unknown whether they were fitted.
        """
        shown = tuple(given or unseen or fitted)
        evidence = f"{counted(len(unseen), 'recording')} not used to fit" if unseen else "the fitted data"
        has_urdf = all(comparison.urdf is not None for comparison in shown)
        return cls(
            shown=shown,
            evidence="the given recordings" if given else evidence,
            is_validated=None if given else bool(unseen),
            repeats_fit=bool(fitted) and bool(unseen) and _motion_distance(fitted, unseen) < MAX_REPEATED_DISTANCE,
            model=validate_comparisons(joints, shown, lambda one: one.identified),
            urdf=validate_comparisons(joints, shown, lambda one: np.asarray(one.urdf)) if has_urdf else None,
            fit=validate_comparisons(joints, fitted, lambda one: one.identified) if fitted else None,
            torque_rms=np.sqrt(np.mean(np.concatenate([one.measured for one in shown]) ** 2, axis=0)),
        )

    @property
    def worst(self) -> int | None:
        """Index of the joint with the lowest R²; None if no joint has torque."""
        return int(np.nanargmin(self.model.r2)) if np.isfinite(self.model.r2).any() else None


def validate_comparisons(
    joints: Sequence[str], comparisons: Sequence[TorqueComparison], predicted: Callable[[TorqueComparison], NDArray]
) -> Validation:
    """Return the agreement by joint over several recordings together."""
    names = ", ".join(one.recording for one in comparisons)
    measured = np.concatenate([one.measured for one in comparisons])
    return validate_torque(names, joints, measured, np.concatenate([predicted(one) for one in comparisons]))


def mean_r2(validation: Validation) -> float:
    """Return the mean R² of the torque over the joints; negative values count as 0."""
    known = validation.r2[~np.isnan(validation.r2)]
    return float(np.maximum(known, 0.0).mean()) if known.size else float("nan")


def _motion_distance(fitted: Sequence[TorqueComparison], unseen: Sequence[TorqueComparison]) -> float:
    """Return the median distance of unseen states from the nearest fitted state, over the spread of the states."""
    known_states, new_states = (
        np.vstack([np.hstack([one.motion.position, one.motion.velocity]) for one in comparisons])
        for comparisons in (fitted, unseen)
    )
    spread = known_states.std(axis=0)
    moving = spread > 0
    queries = new_states[spread_indices(len(new_states), MAX_DISTANCE_SAMPLES)]
    distance, _ = cKDTree(known_states[:, moving] / spread[moving]).query(queries[:, moving] / spread[moving])
    return float(np.median(distance) / np.sqrt(max(int(moving.sum()), 1)))


@dataclass(frozen=True, eq=False)
class ResidualCorrelation:
    """Autocorrelation of the residuals of the longest recording.

    Attributes:
        lag: (L,) s.
        values: (L, n) autocorrelation of the residual of each joint.
        noise: (L,) autocorrelation of white noise after the low-pass.
        band: half width of the 95 % band about `noise` for estimates from white noise (Bartlett 1946).
    """

    lag: NDArray
    values: NDArray
    noise: NDArray
    band: float

    @classmethod
    def from_comparisons(cls, cutoff: float, comparisons: Sequence[TorqueComparison]) -> ResidualCorrelation:
        """Estimate the autocorrelation of residuals that a low-pass at `cutoff` Hz has filtered."""
        longest = max(comparisons, key=lambda one: len(one.time))
        period = longest.period
        parts = split_at_gaps(longest.time)
        length = max(part.stop - part.start for part in parts)
        n_lags = int(max(1, min(MAX_LAG_S / period, length // 2)))
        residual = longest.residual - longest.residual.mean(axis=0)
        values = np.array([_mean_product([residual[part] for part in parts], lag) for lag in range(n_lags + 1)])
        power = np.where(values[0] > 0, values[0], np.nan)
        decimation = max(1, round(period * longest.rate))
        noise = _noise_correlation(LowPass(cutoff, longest.rate), decimation * n_lags + 1)[::decimation]
        band = 1.96 * np.sqrt((1 + 2 * np.sum(noise[1:] ** 2)) / len(residual))
        return cls(period * np.arange(n_lags + 1), values / power, noise, float(band))

    @property
    def memory(self) -> NDArray:
        """(n,) correlation time, s: smallest lag with an autocorrelation within the band; infinite if there is none."""
        above = self.values > self.noise[:, None] + self.band
        above[0] = True
        within = ~above & np.isfinite(self.values)
        return np.where(within.any(axis=0), self.lag[within.argmax(axis=0)], np.inf)

    @property
    def is_noise(self) -> NDArray:
        """(n,) whether the residuals look like sensor noise."""
        with np.errstate(invalid="ignore"):
            outside = np.abs(self.values - self.noise[:, None]) > self.band
        return np.mean(outside[1:], axis=0) <= MAX_OUTSIDE_FRACTION

    def sentences(self, joints: Sequence[str], block: float) -> list[str]:
        """Return sentences that interpret the autocorrelation of the residuals.

        Args:
            joints: names of the joints.
            block: duration, s, of the blocks of data whose differences give the standard errors; NaN: not known.
        """
        if self.is_noise.all():
            return ["The residuals look like sensor noise: this motion shows no effects that the model lacks."]
        correlated = [name for name, is_noise in zip(joints, self.is_noise, strict=True) if not is_noise]
        longest = self.memory[~self.is_noise].max()
        duration = f"up to {significant(longest, 2)} s" if np.isfinite(longest) else f"more than {brief(MAX_LAG_S)} s"
        which = "all joints" if len(correlated) == len(joints) else listed(correlated)
        sentences = [
            f"The residuals of {which} are not sensor noise: they stay correlated for {duration}. They are effects "
            "that the model lacks, mostly friction. The standard errors allow for this correlation: they are computed "
            "from the differences between blocks of data, not from the number of samples."
        ]
        slow = [name for name, memory in zip(joints, self.memory, strict=True) if memory > block]
        if slow:
            sentences.append(
                f"The blocks are {significant(block, 2)} s long; residuals of {listed(slow)} stay correlated for "
                "longer, so their intervals are too narrow. Record longer."
            )
        return sentences

    def draw(self, joint: int, name: str) -> str:
        """Draw the autocorrelation of one joint as SVG."""

        def draw(figure: Figure) -> None:
            axes = plot_area(figure, left=36, bottom=38, top=6)
            low = self.noise - self.band
            high = self.noise + self.band
            axes.fill_between(self.lag, low, high, color=LIGHT["band"], linewidth=0)
            axes.axhline(0, color=LIGHT["line"], linewidth=1)
            axes.plot(self.lag, self.values[:, joint], color=LIGHT["identified"], linewidth=1.6)
            axes.set_ylim(-1.05, 1.05)
            axes.margins(x=0)
            axes.set_yticks([-1, 0, 1])
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.set_xlabel("lag (s)")

        return svg(f"Autocorrelation of the residual of {name}", CORRELATION_WIDTH, CORRELATION_HEIGHT, draw)


def _mean_product(parts: Sequence[NDArray], lag: int) -> NDArray:
    """Return the mean product (n,) of residuals that are `lag` samples apart, within parts (M_i, n)."""
    pairs = [(part[: len(part) - lag], part[lag:]) for part in parts if len(part) > lag]
    return sum(np.sum(a * b, axis=0) for a, b in pairs) / sum(len(a) for a, _ in pairs)


def _noise_correlation(low_pass: LowPass, count: int) -> NDArray:
    """Return the autocorrelation (count,) of low-passed white noise at lags of 0, 1, … samples."""
    frequency = np.fft.rfftfreq(max(FILTER_SAMPLES, 2 * count), 1 / low_pass.rate)
    values = np.fft.irfft(low_pass.gain(frequency) ** 2)[:count]
    return values / values[0]


def friction_section(
    document: Mapping[str, Any],
    units: Mapping[str, JointUnits],
    model: LinkModel | None = None,
    fitted: Sequence[TorqueComparison] = (),
) -> Section | None:
    """Return the section on friction; None if the document has no friction.

    Args:
        document: content of `identified.yaml`.
        units: units of each joint.
        model: identified links and friction, to draw the curves.
        fitted: fitted recordings, to draw points next to the curves.
    """
    if not any((document.get("friction") or {}).get(joint) for joint in joints_of(document)):
        return None
    table = _friction_table(document, units)
    if len(table.columns) == 1:
        return None
    curves: list[Any] = []
    if model is not None and fitted:
        curves = [
            "Line: identified friction over the velocity of the joint. Points: measured minus rigid-body torque.",
            Figures(_friction_curves(model, fitted), size="small"),
        ]
    return Section(
        "Friction",
        [
            *curves,
            "Coefficients of the identified model with the 95 % intervals of the data alone. If the data determine "
            "only the sum of friction and offset, the table has the torques in the + and in the − direction of motion: "
            "an offset of the sensor cannot be distinguished from friction that depends on the direction.",
            table,
        ],
    )


def _friction_table(document: Mapping[str, Any], units: Mapping[str, JointUnits]) -> Table:
    """Return a table with a row for each joint and coupled pair, and columns for families of terms and for shapes."""
    rows: dict[str, dict[str, list[str]]] = {}
    shapes: dict[str, str] = {}
    for joint, entry in entries_of(document, "friction").items():
        terms = [str(term) for term in entry.get("terms") or ("coulomb", "viscous", "offset")]
        terms += [] if "rotor_inertia" in terms else ["rotor_inertia"]
        if any(is_number(entry.get(label)) for label in DIRECTIONS):
            terms = [*DIRECTIONS, *(term for term in terms if not term.startswith(("coulomb", "offset")))]
        rows[joint] = _lines_by_family(document, entry, terms, units[joint])
        shapes[joint] = _describe_shapes(entry, units[joint])
    for pair in document["friction"].get("coupled") or ():
        first, second = pair["joints"]
        name = f"{first} and {second}"
        rows[name] = _lines_by_family(document, pair, COUPLING_TERMS, units[first])
        shapes[name] = "one motor drives both"
    families = [family for family in FAMILIES if any(family in lines for lines in rows.values())]
    columns: dict[str | tuple[str, str], list[str | Cell]] = {}
    for family in families:
        heading, unit = FAMILIES[family]
        lines = [row.get(family, [UNKNOWN_TEXT]) for row in rows.values()]
        columns[heading, unit] = [Cell(texts[0], texts[1:]) for texts in lines]
    if any(shapes.values()):
        columns["Shape"] = list(shapes.values())
    return Table.by_column("Joint", list(rows), columns, words=[len(families) + 1])


def _lines_by_family(
    document: Mapping[str, Any], entry: Mapping[str, Any], terms: Sequence[str], unit: JointUnits
) -> dict[str, list[str]]:
    """Return the coefficients as text by family of terms; a direction or harmonic precedes its coefficient."""
    lines: dict[str, list[str]] = {}
    for term in terms:
        if not is_number(entry.get(term)):
            continue
        is_divided = term.endswith(tuple(SIDES)) or term.startswith(("cos_", "sin_"))
        family, _, side = term.rpartition("_") if is_divided else (term, "", "")
        value = with_interval(document, entry, term, cell_unit(FAMILIES[family][1], unit))
        lines.setdefault(family, []).append(f"{SIDES.get(side, side)}: {value}" if side else value)
    return lines


def _describe_shapes(entry: Mapping[str, Any], unit: JointUnits) -> str:
    texts = []
    for key, (name, field) in SHAPE_NAMES.items():
        value = entry.get(key)
        if is_number(value) and value:
            scale = unit.scale if field == "position" else 1.0
            texts.append(f"{name} {significant(scale * value, 2)} {getattr(unit, field)}")
    return ", ".join(texts)


def _friction_curves(model: LinkModel, fitted: Sequence[TorqueComparison]) -> list[Plot]:
    """Return a plot of the friction curve of each joint with friction, with points at the recorded velocities."""
    robot = model.robot
    velocity = np.concatenate([comparison.motion.velocity for comparison in fitted])
    residual = np.concatenate([comparison.residual for comparison in fitted])
    loads = [model.friction.load_torque(robot, *comparison.motion) for comparison in fitted]
    known = [load for load in loads if load is not None]
    mean_load = np.mean(np.abs(np.concatenate(known)), axis=0) if known else np.zeros(robot.n_joints)
    plots = []
    first = 0
    for i, (joint, unit, friction) in enumerate(zip(robot.joint_names, joint_units(robot), model.joints, strict=True)):
        coefficients = model.coefficients[first : first + len(friction.terms)]
        first += len(friction.terms)
        if friction.terms:
            curve = _steady_friction(friction, coefficients, mean_load[i])
            plots.append(Plot(_draw_curve(joint, unit, curve, velocity[:, i], residual[:, i]), joint))
    return plots


def _steady_friction(friction: JointFriction, coefficients: NDArray, load: float) -> Callable[[NDArray], NDArray]:
    """Return a function from constant velocities (N,) to friction torque, without terms that depend on position."""

    def torque(velocity: NDArray) -> NDArray:
        zero = np.zeros_like(velocity)
        direction = replace(friction.direction_model, sliding_length=0.0).evaluate(velocity)
        total = np.zeros_like(velocity)
        for coefficient, part in zip(coefficients, friction.parts, strict=True):
            if not acts_at_standstill(part.name):
                total += coefficient * part.column(zero, velocity, zero, direction, np.full_like(velocity, load))
        return total

    return torque


def _draw_curve(
    joint: str, unit: JointUnits, torque: Callable[[NDArray], NDArray], velocity: NDArray, residual: NDArray
) -> str:
    """Draw the friction curve, and points with the curve plus the residual at the recorded velocities, as SVG."""
    rows = spread_indices(len(velocity), 150)
    top = np.abs(velocity).max(initial=1e-6)
    half = top * np.linspace(0, 1, 100) ** 2 + 1e-6 * top
    speeds = np.concatenate([-half[::-1], half])

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=42, bottom=38, top=6)
        axes.axhline(0, color=LIGHT["line"], linewidth=1)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        marker: dict[str, Any] = {"markersize": 2.2, "markeredgewidth": 0, "color": LIGHT["measured"], "alpha": 0.45}
        axes.plot(velocity[rows], torque(velocity[rows]) + residual[rows], "o", **marker)
        axes.plot(speeds, torque(speeds), color=LIGHT["identified"], linewidth=1.8)
        axes.set_xlabel(f"velocity ({unit.velocity})")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(4))

    return svg(f"Friction of {joint} over its velocity", CURVE_WIDTH, CURVE_HEIGHT, draw)
