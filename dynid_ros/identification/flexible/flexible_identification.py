"""Identification of an arm with flexible joints (Lightcap and Banks 2007): links, springs and motors.

A search fits the model to all signals by maximum likelihood. Where it may have ended in a local minimum, it is repeated
from other starts, and the errors of the result cover all solutions that are nearly as likely.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.identification.flexible.flexible_parameters import MOTOR_TERMS, Layout, resonances, rigid_sums
from dynid_ros.identification.flexible.flexible_prediction import concatenate, predict_run
from dynid_ros.identification.flexible.flexible_result import LOCAL_MINIMUM_TEXT, FlexibleResult, RunFound, remarks
from dynid_ros.identification.flexible.output_error import OutputError, Solution
from dynid_ros.identification.flexible.run_residuals import CLOCK_TERMS, N_RUN_VALUES, Channel, RunTerms
from dynid_ros.identification.flexible.runs import FEW_JOINTS, Run, check_links, runs
from dynid_ros.identification.flexible.starting_values import (
    USUAL_TERMS,
    SearchOutcome,
    Start,
    extended,
    shifted,
    starts,
    torque_ripples,
    with_motor_friction,
)
from dynid_ros.mocap.link_angles import LinkAngles
from dynid_ros.model import RobotModel
from dynid_ros.model.spring import SPRINGS, Spring
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import Recordings, read_all
from dynid_ros.recording.uniform_motion import require_torque
from dynid_ros.settings import check, setting
from dynid_ros.signals.clock_alignment import align_clocks

# Local minima: a search that may have ended in one is repeated from other starts, and the solutions are compared.


MAX_MISFIT = 3.0
"""Mean square of the whitened residuals above which a search is repeated from other starts; noise alone leaves one."""
MAX_UNEXPLAINED = 0.1
"""RMS residual above which a search is repeated, as a fraction of the standard deviation of the torque."""
N_OTHER_CLOCKS = 2
"""Largest number of other starts that differ in the offset of the links' clock."""
OTHER_SPRINGS = (0.5, 2.0)
"""Factors of the first start's stiffness that yield further starts."""
MAX_STIFFNESS_RSE = 0.1
"""Relative standard error of a stiffness above which a search is repeated from other stiffnesses."""
MIN_LEADING_GAIN = 2.0
"""Gain of log-likelihood by which another solution must exceed the first one to replace it: two standard errors."""
RIVAL_RMS_RATIO = 1.5
"""Ratio of the RMS residuals of another solution to those of the best one, in the geometric mean over the channels,
below which the other solution may be the right one."""


def fits_poorly(end: SearchOutcome) -> bool:
    """Return whether the residuals are larger than noise explains, as after a search that ended in a local minimum."""
    return end.solution.misfit > MAX_MISFIT or unexplained_fraction(end) > MAX_UNEXPLAINED


def unexplained_fraction(end: SearchOutcome) -> float:
    """Return the largest RMS residual of any torque, as a fraction of the standard deviation of that torque.

    Only residuals at the lines (harmonics) of periodic motion count, and at the compared frequencies of other motion.
    Residuals between lines are noise, and at high frequencies they are noise of the motors' accelerations.
    """
    fractions = [
        _unexplained_torque(run, channel)
        for run, channels in zip(end.runs, end.solution.channels, strict=True)
        for channel in channels
        if channel.kind == "motor"
    ]
    return max(fractions, default=0.0)


def _unexplained_torque(run: Run, channel: Channel) -> float:
    """Return the RMS residual of a torque, as a fraction of the standard deviation of that torque."""
    counted = run.compared.lines if len(run.compared.lines) else run.compared.bins
    return channel.rms_at(counted) / (float(np.std(run.torque[:, channel.joint])) + 1e-300)


def stiffness_uncertain(end: SearchOutcome, stiffness: NDArray) -> bool:
    """Return whether a stiffness is so uncertain that the search may have stayed near its start.

    Where links stick, the likelihood is uneven. If it hardly depends on the stiffness, this traps the search.
    """
    errors = np.sqrt(np.diagonal(end.solution.covariance))[stiffness]
    return bool((errors > MAX_STIFFNESS_RSE * end.solution.values[stiffness]).any())


def _rival(
    layout: Layout, start: Start, runs: list[Run], terms: Sequence[RunTerms], best: SearchOutcome
) -> SearchOutcome:
    """Search once from another start, with residuals weighted by the noise spectral densities of the best fit."""
    moved = shifted(runs, terms, start.shift)
    search = OutputError(layout, moved, terms)
    return SearchOutcome(start, search, moved, search.search_rival(start.values, best.solution.channels))


def _leads(rival: SearchOutcome, best: SearchOutcome) -> bool:
    """Return whether a rival is likelier than the best end so far by more than ends in one minimum differ."""
    frequencies = np.mean([len(run.compared.bins) for run in best.runs])
    return bool(2.0 * frequencies * (best.solution.left - rival.solution.left) > MIN_LEADING_GAIN)


def _converged(end: SearchOutcome) -> SearchOutcome:
    """Continue the search of the best rival, with noise spectral densities estimated from its own residuals."""
    solution = end.solution
    near = solution.values, end.search.named(solution.runs)
    return end._replace(solution=end.search.solve(solution.values, near))


def widen_for_rivals(result: FlexibleResult, best: SearchOutcome, ends: Sequence[SearchOutcome]) -> FlexibleResult:
    """Return a copy of a result whose covariance covers all solutions that predict nearly as well, with its remarks.

    The difference d between such a solution and the best one adds d dᵀ. A torque ripple that the model lacks adds the
    same of the change of the parameters that it causes.
    """
    channels = sum(len(run) for run in best.solution.channels)
    covariance = result.covariance.copy()
    rivals = 0
    for end in ends:
        if end is not best and end.solution.left < best.solution.left + channels * np.log(RIVAL_RMS_RATIO):
            difference = end.solution.values - best.solution.values
            rivals += bool((np.abs(difference) > 2.0 * result.standard_errors).any())
            covariance += np.outer(difference, difference)
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
"""Length of the part of each stretch of motion with which a search for several joints begins, to save time, s."""
MIN_WHOLE_RUN_S = 1.5 * SHORT_RUN_S
"""Length of the longest stretch from which the search begins with that part, s."""
CHOSEN_BY_DATA = "auto"
"""Setting that lets the data choose the laws of the springs (in `jobs.flexible_joints`) or the terms of the motors."""
CLOCKS = ("auto", "same", "own")
USELESS_RESIDUAL_FRACTION = 1.0
"""RMS residual of a fit that explains nothing, as a fraction of the standard deviation of the torque."""


@dataclass
class FlexibleJointIdentification:
    """Maximum-likelihood identification of links, springs and motors from the measured positions of both sides.

    Links: Y(q, q̇, q̈) x + c sign(q̇) + v q̇ = s(q_m - q). Motors: u = s(q_m - q) + J q̈_m + b q̇_m.
    q_m and u are positions and torques of the motors, seen from the links (behind the gears). q are the positions of
    the links, by motion capture or by encoders behind the gears. x are the base parameters, c and v the Coulomb and
    viscous friction of the links, s the law of the springs, J and b inertia and viscous friction of the motors.
    Linear least squares, first of the motors' equations and then of the links', give a start. The search then predicts
    all measured signals, with residuals weighted by their noise.

    Attributes:
        robot: Kinematics and gravity; its nominal links are the start of the search. If only one joint moves and
            brakes hold the others, see `model.locked`.
        spring: Law of all springs, or by joint: "linear", "cubic" or "dead_zone".
        motor_terms: Terms of the motors' torques: "motor_inertia", "motor_viscous", "motor_coulomb" and
            "torque_offset". "auto": the first two, and "motor_coulomb" where it is significant.
        zero: Whether a constant offset of each link position from its motor position is estimated for every recording.
            If not, the measured deflection must be zero where the spring is relaxed.
        clock: Clock of the links' sensor: "own": its offset is estimated; "same": the robot's clock; "auto": "own" for
            link angles that are given separately, "same" for link positions in the recording.
        drift: Whether a drift of the clock of the links' sensor is estimated.
        band: Highest frequency at which signals are compared, Hz; None: chosen from the motion.
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
        """Identify the arm from one or more recordings or their files.

        Args:
            recordings: positions and torques of the motors; they may have further joints.
            links: positions of the links for each recording, as estimated by `mocap_links`; None: `link_position` of
                the recording.

        Raises:
            RecordingError: a joint of the model is not in a recording, or its clock cannot be aligned.
            IdentificationError: there is no torque, no motion or no link position, the link positions are implausible,
                or no parameters fit.
        """
        if not recordings:
            raise IdentificationError("fit needs at least one recording")
        # Stretches of motion, and the order of the parameters. With "auto", dry friction of the motors is added later.
        read = read_all(recordings, self.robot.joint_names)
        link_angles = _angles_by_recording(links, len(read))
        pairs = list(zip(read, link_angles, strict=True))
        moving = [run for recording, angles in pairs for run in self._runs(recording, angles)]
        initial_terms = USUAL_TERMS if self._chooses_terms else self.motor_terms
        terms = tuple(term for term in MOTOR_TERMS if term in initial_terms)
        layout = Layout(self.robot, self.robot.base_parameters(), self._springs(), terms)
        run_terms = [RunTerms(self.zero, not run.same_clock, self.drift and not run.same_clock) for run in moving]
        short_runs = None
        if layout.robot.n_joints > FEW_JOINTS and max(np.ptp(run.time) for run in moving) > MIN_WHOLE_RUN_S:
            short_runs = [run for recording, angles in pairs for run in self._runs(recording, angles, SHORT_RUN_S)]
        # First search, from the best of several offsets of the links' clock.
        first, *others = starts(layout, short_runs or moving, run_terms)
        best = self._search_from(layout, first, moving, short_runs, run_terms)
        if self._chooses_terms:
            best = with_motor_friction(best, run_terms)
            layout = best.search.layout
            others = [start._replace(values=extended(start.values, layout)) for start in others]
        # Further searches, from other clocks and springs, if the first one may have ended in a local minimum.
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
                    # A rival of a poor fit needs one search to be compared. After an uncertain stiffness each needs
                    # all, because the interval will span their solutions.
                    rival = (
                        _rival(layout, start, moving, run_terms, best)
                        if poor
                        else self._search_from(layout, start, moving, short_runs, run_terms)
                    )
                    ends.append(rival)
            leader = min(ends, key=lambda end: end.solution.left)
            if _leads(leader, best):
                best = _converged(leader) if poor else leader
                ends = [best, *(end for end in ends if end is not leader)]
        return widen_for_rivals(self._result(layout, best, tuple(recording.source for recording in read)), best, ends)

    def _search_from(
        self, layout: Layout, start: Start, moving: list[Run], short_runs: list[Run] | None, terms: list[RunTerms]
    ) -> SearchOutcome:
        """Search from a start; `short_runs`, if given, are searched first, and their result is a second start."""
        aligned = shifted(moving, terms, start.shift)
        near = None
        search = OutputError(layout, aligned, terms)
        if short_runs is not None:
            near = OutputError(layout, shifted(short_runs, terms, start.shift), terms).approach(start.values)
        return SearchOutcome(start, search, aligned, search.solve(start.values, near))

    @property
    def _chooses_terms(self) -> bool:
        """Whether the data choose the terms of the motors."""
        return tuple(self.motor_terms) == (CHOSEN_BY_DATA,)

    def repeat(
        self, *recordings: Recording, links: Sequence[LinkAngles | None] | None = None
    ) -> tuple[FlexibleResult, ...]:
        """Identify from each recording alone, for means and coefficients of variation as in the paper's table I."""
        link_angles = _angles_by_recording(links, len(recordings))
        return tuple(self.fit(r, links=angles) for r, angles in zip(recordings, link_angles, strict=True))

    def _springs(self) -> list[Spring]:
        """Return the spring of each joint, linear where none is set; raise an error for unknown joints or laws."""
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
        """Return the stretches of motion, at most `most` s long, of a recording whose clocks are aligned roughly."""
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
        _require_explained(end, layout.robot.joint_names)
        _, search, stretches, solution = end
        frequencies, errors = resonances(layout, solution, stretches)
        return FlexibleResult(
            layout=layout,
            parameters=solution.values,
            covariance=solution.covariance,
            condition_number=solution.condition_number,
            resonances=frequencies,
            resonance_errors=errors,
            sums=rigid_sums(layout, solution),
            runs=tuple(self._run_found(layout, search, solution, k, run) for k, run in enumerate(stretches)),
            sources=sources,
            settings={
                "spring": [type(law).__name__ for law in layout.springs],
                "motor_terms": list(layout.motor_terms),
                "zero": self.zero,
                "clock": self.clock,
                "band": float(min(run.band for run in stretches)),
            },
            remarks=(),
            iterations=solution.iterations,
        )

    def _run_found(self, layout: Layout, search: OutputError, solution: Solution, k: int, run: Run) -> RunFound:
        n = run.n_joints
        residuals = search.residuals[k]
        names = residuals.terms.names(n)
        first = N_RUN_VALUES * n  # initial state and stiction of the links come before the named values
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
    """Return one entry of link angles for each recording; None for a recording without."""
    if links is None:
        return [None] * count
    angles: list[LinkAngles | None] = [links] if isinstance(links, LinkAngles) else list(links)
    if len(angles) != count:
        raise IdentificationError(
            f"links are given for {len(angles)} of {count} recordings; give one LinkAngles, or None, for each"
        )
    return angles


def _require_explained(end: SearchOutcome, joint_names: Sequence[str]) -> None:
    """Raise an error if a torque is not explained at all: a local minimum, or a model of another arm."""
    for run, channels in zip(end.runs, end.solution.channels, strict=True):
        for channel in channels:
            if channel.kind == "motor" and _unexplained_torque(run, channel) > USELESS_RESIDUAL_FRACTION:
                raise IdentificationError(
                    f"{run.source}: the best fit leaves {_unexplained_torque(run, channel):.0%} of joint "
                    f"'{joint_names[channel.joint]}'s torque unexplained; "
                    "no parameters can be distinguished from it: try other springs (--spring auto), check the units "
                    "and signs of torques and link angles, the order of the joints and the camera's clock, "
                    "or record a motion nearer to the resonance"
                )


def _rms(values: NDArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
