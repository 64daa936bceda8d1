"""Links, springs and motors of an arm with flexible joints (Lightcap and Banks 2007), one joint or the whole chain."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.identification.flexible.flexible_parameters import MOTOR_TERMS, Layout, resonances, rigid_sums
from dynid_ros.identification.flexible.flexible_prediction import concatenate, predict_run
from dynid_ros.identification.flexible.flexible_result import FlexibleResult, RunFound, measured
from dynid_ros.identification.flexible.motor_friction import (
    USUAL_TERMS,
    SearchOutcome,
    extended,
    torque_ripples,
    with_motor_friction,
)
from dynid_ros.identification.flexible.output_error import OutputError, Solution
from dynid_ros.identification.flexible.run_residuals import CLOCK_TERMS, N_RUN_VALUES, RunTerms
from dynid_ros.identification.flexible.runs import FEW_JOINTS, Run, check_links, runs
from dynid_ros.identification.flexible.spring_fit import fit_spring
from dynid_ros.identification.flexible.starting_values import Start, shifted, starts
from dynid_ros.mocap.link_angles import LinkAngles
from dynid_ros.model import RobotModel
from dynid_ros.model.spring import SPRINGS, Spring
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import Recordings, read_all
from dynid_ros.recording.uniform_motion import require_torque
from dynid_ros.settings import check, setting
from dynid_ros.signals.clock_alignment import align_clocks

# Remarks on undetermined parameters.


MAX_RESIDUAL_FRACTION = 0.2
"""Largest RMS residual of a good fit, in parts of a torque's standard deviation."""
MIN_SPRING_R2 = 0.5
"""R² of a spring's torque, of any law, by its measured deflection, above which the spring does wind up."""
LOCAL_MINIMUM_TEXT = "in a wrong place"
"""Text of every remark on a search that ended in a local minimum."""
SPLIT = ("viscous", "motor_viscous", "motor_inertia")


def remarks(result: FlexibleResult) -> tuple[str, ...]:
    """Return sentences on undetermined parameters by joint, with what would determine them."""
    found = []
    intervals = result.confidence_intervals()
    stiffness = result.term("stiffness")
    at = result.layout.index("stiffness")
    for i, joint in enumerate(result.joint_names):
        if not stiffness.decided[i]:
            found.append(f"{joint}: its stiffness is not determined ({_why_not(result, i, float(intervals[at[i], 0]))}")
        unknown = [name for name in SPLIT if name in _terms(result) and not result.term(name).decided[i]]
        if unknown:
            frequency = result.resonances[i]
            way_out = f"; move near {frequency:.2g} Hz" if np.isfinite(frequency) else ""
            found.append(
                f"{joint}: {', '.join(unknown)} not determined by themselves: so slow a motion shows only the sums "
                f"of link and motor{way_out}"
            )
    for run in result.runs:
        varied = np.std(run.prediction.measured_torque, axis=0)
        for joint, left, size in zip(result.joint_names, run.torque_rms, varied, strict=True):
            if left > MAX_RESIDUAL_FRACTION * size:
                found.append(
                    f"{run.source}: {left / size:.0%} of the torque of {joint} is left unexplained: the model is not "
                    "that of this arm, its spring follows another law (--spring auto tries them), or the search ended "
                    f"{LOCAL_MINIMUM_TEXT}; errors are larger than stated"
                )
        if run.clock_offset_error > 5e-4:
            found.append(f"{run.source}: the clock's offset is known to {1e3 * run.clock_offset_error:.2g} ms only")
    return tuple(found)


def _why_not(result: FlexibleResult, i: int, low: float) -> str:
    """Return the rest of the sentence on an undetermined stiffness: another law of the spring, or a stiff joint."""
    deflection, torque, runs = measured(result, i)
    law = next(name for name, kind in SPRINGS.items() if isinstance(result.layout.springs[i], kind))
    try:
        fit = fit_spring(deflection, torque, tuple(SPRINGS), runs=runs)
    except IdentificationError:
        fit = None
    if fit is not None and fit.r_squared > MIN_SPRING_R2:
        other = "" if fit.law == law else f", as a {fit.law} spring would: set spring='{fit.law}' (--spring {fit.law})"
        return (
            f"its deflection follows the torque, R² {fit.r_squared:.2f}{other}); it is not rigid: see the report's "
            "spring as measured, or take --spring auto"
        )
    unit = "N/m" if result.layout.robot.chain.prismatic[i] else "N m/rad"
    least = f"at least {low:.3g} {unit}, " if np.isfinite(low) and low > 0 else ""
    return (
        f"{least}the spring hardly winds up compared with the noise); take the joint as rigid, or move it with "
        "more torque near its resonance"
    )


def _terms(result: FlexibleResult) -> tuple[str, ...]:
    return ("viscous", *result.layout.motor_terms)


# Searches that end in a local minimum.


MAX_MISFIT = 3.0
MAX_UNEXPLAINED = 0.1
"""Mean square of the whitened residuals, and RMS residual in parts of a torque's standard deviation, above which a
search is repeated from other starts."""
N_OTHER_CLOCKS = 2
OTHER_SPRINGS = (0.5, 2.0)
"""Number of other clocks, and factors of the first start's stiffness, of the other starts."""
MAX_STIFFNESS_RSE = 0.1
"""Relative standard error of a stiffness above which a search is repeated from other springs."""
RIVAL_RMS_RATIO = 1.5
"""Mean ratio of RMS residuals to those of the best fit up to which another end may be the right one."""


def fits_poorly(end: SearchOutcome) -> bool:
    """Return whether residuals exceed noise."""
    return end.solution.misfit > MAX_MISFIT or unexplained_fraction(end) > MAX_UNEXPLAINED


def unexplained_fraction(end: SearchOutcome) -> float:
    """Return the largest RMS residual in parts of a torque's standard deviation, without the noise between lines."""
    left = 0.0
    for run, channels in zip(end.runs, end.solution.channels, strict=True):
        for one in channels:
            if one.kind == "motor":
                unexplained = _rms(one.samples) * np.sqrt(_line_share(one.residual, run.compared.lines))
                left = max(left, unexplained / (float(np.std(run.torque[:, one.joint])) + 1e-300))
    return left


def _line_share(residual: NDArray, lines: NDArray) -> float:
    """Return the part of a residual's power (F,) at the lines of a periodic motion; one for other motions."""
    power = np.abs(residual) ** 2
    return float(power[lines].sum() / (power.sum() + 1e-300)) if len(lines) else 1.0


def stiffness_uncertain(end: SearchOutcome, stiffness: NDArray) -> bool:
    """Return whether a stiffness is known so poorly that its search may have stayed near its start.

    Where links stick, the predictions of two springs may differ less than the likelihood is uneven.
    """
    errors = np.sqrt(np.diagonal(end.solution.covariance))[stiffness]
    return bool((errors > MAX_STIFFNESS_RSE * end.solution.values[stiffness]).any())


def _rival(
    layout: Layout, start: Start, runs: list[Run], terms: Sequence[RunTerms], best: SearchOutcome
) -> SearchOutcome:
    """Search once from another start with the densities of noise of the best fit."""
    moved = shifted(runs, terms, start.shift)
    search = OutputError(layout, moved, terms)
    return SearchOutcome(start, search, moved, search.search_rival(start.values, best.solution.channels))


def _converged(end: SearchOutcome) -> SearchOutcome:
    """Return a rival that turned out best, with densities of noise by its own residuals."""
    near = end.solution.values, end.search.named(end.solution.runs)
    return end._replace(solution=end.search.solve(end.solution.values, near))


def widen_for_rivals(result: FlexibleResult, best: SearchOutcome, ends: Sequence[SearchOutcome]) -> FlexibleResult:
    """Return a result whose errors cover all ends that predict nearly as well, with a remark if residuals are large."""
    channels = sum(len(run) for run in best.solution.channels)
    covariance = result.covariance.copy()
    rivals = 0
    for end in ends:
        if end is not best and end.solution.left < best.solution.left + channels * np.log(RIVAL_RMS_RATIO):
            apart = end.solution.values - best.solution.values
            rivals += bool((np.abs(apart) > 2.0 * result.standard_errors).any())
            covariance += np.outer(apart, apart)
    ripples = torque_ripples(best, result.joint_names)
    covariance += sum((np.outer(ripple.shift, ripple.shift) for ripple in ripples), np.zeros_like(covariance))
    result = replace(result, covariance=covariance)
    result = replace(result, remarks=(*remarks(result), *(ripple.remark for ripple in ripples)))
    if not fits_poorly(best):
        return result
    where = f"; {rivals} of {len(ends) - 1} other searches ended elsewhere and nearly as well" if rivals else ""
    excess = (
        f"residuals are {np.sqrt(best.solution.misfit):.1f} times what noise leaves"
        if best.solution.misfit > MAX_MISFIT
        else f"{unexplained_fraction(best):.0%} of a torque is left, which noise does not explain"
    )
    remark = (
        f"{excess}, from {len(ends)} starts{where}: "
        f"the search ended {LOCAL_MINIMUM_TEXT}, or friction, springs or gears are not the model's; intervals may not "
        "hold: see the report's residuals, try --spring auto, another URDF or a motion nearer to the resonance"
    )
    return replace(result, remarks=(*result.remarks, remark))


SHORT_RUN_S = 5.0
"""Length of the part of each stretch with which the search for many joints begins, s."""
CHOSEN_BY_DATA = "auto"
"""Setting that leaves the laws of springs (`jobs.flexible_joints`) and the terms of motors to the data."""
CLOCKS = ("auto", "same", "own")
USELESS_RESIDUAL_FRACTION = 1.0
"""RMS residual, in parts of a torque's standard deviation, of a fit that explains nothing."""


@dataclass
class FlexibleJointIdentification:
    """Fits Y(q) x + c sign(q̇) + v q̇ = s(q_m - q) and u = s(q_m - q) + J q̈_m + b q̇_m by maximum likelihood.

    q_m and u are positions and torques of the motors, seen from the links. q are the positions of the links, by motion
    capture or by encoders behind the gears, and s is the law of the springs. The motors' equations, solved first, and
    then the links' give a start. The result predicts all measured signals best, each weighed by its noise.

    Attributes:
        robot: Kinematics and gravity; its nominal links are the start of the search. For one joint alone, the others
            held by their brakes, see `model.locked`.
        spring: Law of all springs, or by joint: "linear", "cubic" or "dead_zone".
        motor_terms: Terms of the motors' torques: "motor_inertia", "motor_viscous", "motor_coulomb" and
            "torque_offset". "auto": the first two, and "motor_coulomb" where it is significant.
        zero: Whether a constant between the positions of each link and its motor is estimated for every recording.
            Without it the measured deflection is absolute.
        clock: Clock of the links' sensor: "own": its offset is estimated; "same": the robot's; "auto": own, unless the
            recording has the links with the motors.
        drift: Whether a drift of that clock is estimated.
        band: Highest compared frequency, Hz; None: chosen from the motion.
    """

    robot: RobotModel
    spring: str | Mapping[str, str] = setting(
        "linear",
        f"law of all springs: {', '.join(SPRINGS)}; auto: the one that predicts held-out samples best, for each joint",
        choices=(*SPRINGS, CHOSEN_BY_DATA),
        read=str,  # programs may give one by joint, so `_springs` checks it
    )
    motor_terms: Sequence[str] = setting(
        (CHOSEN_BY_DATA,),
        f"terms of the motors' torques, some of {', '.join(MOTOR_TERMS)}; auto: the first two, and dry friction "
        "where the torques show it",
        symbol="TERMS",
    )
    zero: bool = setting(True, "estimate a constant between each link and its motor", offered=False)
    clock: str = setting(
        "auto",
        "clock of the links' sensor: own, its offset is estimated; same, that of the motors; auto, own for cameras",
        choices=CLOCKS,
    )
    drift: bool = setting(False, "estimate a drift of the clock of the links' sensor too")
    band: float | None = setting(
        None,
        "frequency up to which signals are compared; default: chosen from the motion",
        unit="Hz",
        above=0,
        symbol="HZ",
    )

    def __post_init__(self) -> None:
        check(self, IdentificationError)
        unknown = sorted(set(self.motor_terms) - set(MOTOR_TERMS))
        if unknown and not self._chooses_terms:
            raise IdentificationError(f"motor_terms: no term {', '.join(unknown)}; expected {', '.join(MOTOR_TERMS)}")
        self._springs()

    def fit(
        self,
        *recordings: Recordings,
        links: LinkAngles | Sequence[LinkAngles | None] | None = None,
    ) -> FlexibleResult:
        """Identify from one or more recordings, or files of these.

        Args:
            recordings: motors' positions and torques, of the robot's joints among others.
            links: positions of the links for each recording, as `mocap_links` finds them; None: the recordings'
                `link_position`.

        Raises:
            RecordingError: a joint of the model is not in a recording, or its clock cannot be aligned.
            IdentificationError: no torque, no positions of links, positions that cannot be those of links, no motion,
                or no parameters that fit.
        """
        if not recordings:
            raise IdentificationError("fit needs at least one recording")
        given = read_all(recordings, self.robot.joint_names)
        seen = _angles_by_recording(links, len(given))
        found = [run for recording, angles in zip(given, seen, strict=True) for run in self._runs(recording, angles)]
        asked = USUAL_TERMS if self._chooses_terms else self.motor_terms
        terms = tuple(term for term in MOTOR_TERMS if term in asked)
        layout = Layout(self.robot, self.robot.base_parameters(), self._springs(), terms)
        own = [RunTerms(self.zero, not run.same_clock, self.drift and not run.same_clock) for run in found]
        brief = None
        if layout.robot.n_joints > FEW_JOINTS and max(np.ptp(run.time) for run in found) > 2 * SHORT_RUN_S:
            brief = [run for r, angles in zip(given, seen, strict=True) for run in self._runs(r, angles, SHORT_RUN_S)]
        first, *others = starts(layout, brief or found, own)
        best = self._search_from(layout, first, found, brief, own)
        if self._chooses_terms:
            best = with_motor_friction(best, own)
            layout = best.search.layout
            others = [start._replace(values=extended(start.values, layout)) for start in others]
        ends = [best]
        stiffness = layout.index("stiffness")
        poor = fits_poorly(best)
        if poor or stiffness_uncertain(best, stiffness):
            others = others[:N_OTHER_CLOCKS] if poor else []
            for factor in OTHER_SPRINGS:
                values = best.start.values.copy()
                values[stiffness] *= factor
                others.append(best.start._replace(values=values))
            for start in others:
                with contextlib.suppress(IdentificationError):
                    # The interval of an uncertain stiffness spans the rivals, so each is searched to its own end.
                    rival = (
                        _rival(layout, start, found, own, best)
                        if poor
                        else self._search_from(layout, start, found, brief, own)
                    )
                    ends.append(rival)
            leader = min(ends, key=lambda end: end.solution.left)
            if leader is not best:
                best = _converged(leader) if poor else leader
                ends = [best, *(end for end in ends if end is not leader)]
        return widen_for_rivals(self._result(layout, best, tuple(recording.source for recording in given)), best, ends)

    def _search_from(
        self, layout: Layout, start: Start, found: list[Run], brief: list[Run] | None, own: list[RunTerms]
    ) -> SearchOutcome:
        """Search from a start, for many joints first in a part of each run."""
        found = shifted(found, own, start.shift)
        near = None
        search = OutputError(layout, found, own)
        if brief is not None:
            near = OutputError(layout, shifted(brief, own, start.shift), own).approach(start.values)
        return SearchOutcome(start, search, found, search.solve(start.values, near))

    @property
    def _chooses_terms(self) -> bool:
        return tuple(self.motor_terms) == (CHOSEN_BY_DATA,)

    def repeat(
        self, *recordings: Recording, links: Sequence[LinkAngles | None] | None = None
    ) -> tuple[FlexibleResult, ...]:
        """Identify from each recording alone, for means and coefficients of variation as in the paper's table I."""
        seen = _angles_by_recording(links, len(recordings))
        return tuple(self.fit(r, links=one) for r, one in zip(recordings, seen, strict=True))

    def _springs(self) -> list[Spring]:
        names = self.robot.joint_names
        laws = dict.fromkeys(names, self.spring) if isinstance(self.spring, str) else dict(self.spring)
        for joint, law in laws.items():
            if joint not in names or law not in SPRINGS:
                raise IdentificationError(
                    f"spring: '{law}' for joint '{joint}'; expected one of {', '.join(SPRINGS)} for joints of "
                    f"{', '.join(names)}"
                )
        return [SPRINGS[laws.get(joint, "linear")]() for joint in names]

    def _runs(self, recording: Recording, angles: LinkAngles | None, most: float = np.inf) -> list[Run]:
        motion = recording.select(self.robot.joint_names)
        require_torque(motion)
        if angles is None:
            if motion.link_position is None:
                raise IdentificationError(
                    f"{recording.source}: no positions of links; record encoders behind the gears as link_position, or "
                    "give the link angles of a camera"
                )
            time = motion.time
            link = motion.link_position
            same = self.clock != "own"
        else:
            time = angles.time
            link = angles.position - angles.offsets
            same = self.clock == "same"
        offset = 0.0
        if not same:
            try:
                offset = align_clocks(motion.time, motion.position, time, link, drift=False).offset
            except RecordingError as error:
                names = ", ".join(motion.joint_names)
                raise RecordingError(f"{recording.source}: joints {names}: {error}") from error
        check_links(motion, time + offset, link)
        try:
            return runs(motion, time, link, same_clock=same, offset=offset, band=self.band, most=most)
        except RecordingError as error:
            raise RecordingError(f"{recording.source}: {error}") from error

    def _result(self, layout: Layout, end: SearchOutcome, sources: tuple[str, ...]) -> FlexibleResult:
        _, search, found, solution = end
        frequencies, errors = resonances(layout, solution, found)
        result = FlexibleResult(
            layout=layout,
            parameters=solution.values,
            covariance=solution.covariance,
            condition_number=solution.condition_number,
            resonances=frequencies,
            resonance_errors=errors,
            sums=rigid_sums(layout, solution),
            runs=tuple(self._run_found(layout, search, solution, k, run) for k, run in enumerate(found)),
            sources=sources,
            settings={
                "spring": [type(law).__name__ for law in layout.springs],
                "motor_terms": list(layout.motor_terms),
                "zero": self.zero,
                "clock": self.clock,
                "band": float(min(run.band for run in found)),
            },
            remarks=(),
            iterations=solution.iterations,
        )
        _require_explained(result)
        return result

    def _run_found(self, layout: Layout, search: OutputError, solution: Solution, k: int, run: Run) -> RunFound:
        n = run.n_joints
        residuals = search.residuals[k]
        names = residuals.terms.names(n)
        first = N_RUN_VALUES * n
        values = dict(zip(names, solution.runs[k][first : first + len(names)], strict=True))
        errors = dict(zip(names, solution.run_errors[k][first : first + len(names)], strict=True))
        rms = {(channel.kind, channel.joint): _rms(channel.samples) for channel in solution.channels[k]}
        zero = np.array([values.get(f"zero {i}", 0.0) for i in range(n)])
        correction = values.get(CLOCK_TERMS[0], 0.0)
        motion = residuals.motion(solution.values, solution.runs[k])
        return RunFound(
            source=run.source,
            clock_offset=run.offset + correction,
            clock_offset_error=errors.get(CLOCK_TERMS[0], 0.0),
            clock_drift=values.get(CLOCK_TERMS[1], 0.0),
            clock_drift_error=errors.get(CLOCK_TERMS[1], 0.0),
            zero=zero,
            link_rms=np.array([rms.get(("link", i), np.nan) for i in range(n)]),
            torque_rms=np.array([rms.get(("motor", i), np.nan) for i in range(n)]),
            prediction=concatenate([predict_run(layout, solution.values, run, motion, zero=zero, clock=correction)]),
        )


def _angles_by_recording(links: LinkAngles | Sequence[LinkAngles | None] | None, count: int) -> list[LinkAngles | None]:
    """Return the links' positions of each recording."""
    if links is None:
        return [None] * count
    given: list[LinkAngles | None] = [links] if isinstance(links, LinkAngles) else list(links)
    if len(given) != count:
        raise IdentificationError(
            f"links are given for {len(given)} of {count} recordings; give one LinkAngles, or None, for each"
        )
    return given


def _require_explained(result: FlexibleResult) -> None:
    """Refuse a fit that leaves most of some torque: a local minimum, or a model of another arm."""
    for run in result.runs:
        varied = np.std(run.prediction.measured_torque, axis=0)
        for joint, left, size in zip(result.joint_names, run.torque_rms, varied, strict=True):
            if left > USELESS_RESIDUAL_FRACTION * size:
                raise IdentificationError(
                    f"{run.source}: the best fit leaves {left / size:.0%} of joint '{joint}'s torque unexplained; "
                    "no parameters can be distinguished from it: try other springs (--spring auto), check the units "
                    "and signs of torques and link angles, the order of the joints and the camera's clock, "
                    "or record a motion nearer to the resonance"
                )


def _rms(values: NDArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
