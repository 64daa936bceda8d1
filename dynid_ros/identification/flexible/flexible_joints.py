"""Links, springs and motors of an arm with flexible joints (Lightcap and Banks 2007), one joint or the whole chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.identification.flexible.joint_parameters import MOTOR_TERMS, Layout
from dynid_ros.identification.flexible.linear_steps import LinearSteps
from dynid_ros.identification.flexible.link_checks import check_links
from dynid_ros.identification.flexible.output_error import OutputError, Solution
from dynid_ros.identification.flexible.prediction import joined, of_run
from dynid_ros.identification.flexible.remarks import remarks
from dynid_ros.identification.flexible.result import FlexibleResult, RunFound
from dynid_ros.identification.flexible.rigid_sums import resonances, rigid_sums
from dynid_ros.identification.flexible.run import Run, runs
from dynid_ros.identification.flexible.run_residuals import CLOCK_TERMS, RunTerms
from dynid_ros.mocap.chain_angles import LinkAngles
from dynid_ros.model import RobotModel
from dynid_ros.model.spring import SPRINGS, Spring
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import require_torque
from dynid_ros.signals.clock_alignment import align_clocks

CLOCKS = ("auto", "same", "own")
UNEXPLAINED = 1.0
"""Of a torque's standard deviation: a fit that leaves more is worse than none."""


@dataclass
class FlexibleJointIdentification:
    """Fits Y(q) x + c sign(q̇) + v q̇ = s(q_m - q) and u = s(q_m - q) + J q̈_m + b q̇_m by maximum likelihood.

    q_m, u: positions and torques of the motors, seen from the links; q: positions of the links, by motion capture or by
    encoders of their own; s: springs. The motors' equations, solved first, and then the links' give a start; what is
    returned predicts all measured signals best, each weighed by its noise.

    Attributes:
        robot: kinematics and gravity; its nominal links are where the search starts. One joint alone, the others held
            by their brakes: `model.locked`.
        spring: law of all springs, or by joint: "linear", "cubic" or "dead_zone".
        motor_terms: of the motors' torques: "motor_inertia", "motor_viscous", and where asked for "motor_coulomb" and
            "torque_offset".
        zero: estimate for every recording a constant between the positions of each link and its motor. Without it the
            deflection is believed to be right by itself.
        clock: of the links' sensor: "own": its offset is estimated; "same": as the robot's; "auto": own, unless the
            recording has the links beside the motors.
        drift: estimate a drift of that clock too.
        band: highest frequency that is compared, Hz; None: chosen from the motion.

    """

    robot: RobotModel
    spring: str | Mapping[str, str] = "linear"
    motor_terms: Sequence[str] = MOTOR_TERMS[:2]
    zero: bool = True
    clock: Literal["auto", "same", "own"] = "auto"
    drift: bool = False
    band: float | None = None

    def __post_init__(self) -> None:
        if self.clock not in CLOCKS:
            raise IdentificationError(f"clock is '{self.clock}'; expected one of {', '.join(CLOCKS)}")
        unknown = sorted(set(self.motor_terms) - set(MOTOR_TERMS))
        if unknown:
            raise IdentificationError(f"motor_terms: no term {', '.join(unknown)}; expected {', '.join(MOTOR_TERMS)}")
        self._springs()

    def fit(
        self, *recordings: Recording, links: LinkAngles | Sequence[LinkAngles | None] | None = None
    ) -> FlexibleResult:
        """Identify from one or more recordings.

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
        seen = _each(links, len(recordings))
        found = [
            run for recording, angles in zip(recordings, seen, strict=True) for run in self._runs(recording, angles)
        ]
        terms = tuple(term for term in MOTOR_TERMS if term in self.motor_terms)
        layout = Layout(self.robot, self.robot.base_parameters(), self._springs(), terms)
        start = LinearSteps(layout, found).solve()
        own = [RunTerms(self.zero, not run.same_clock, self.drift and not run.same_clock) for run in found]
        search = OutputError(layout, found, own)
        solution = search.solve(start)
        return self._result(layout, search, solution, found, tuple(recording.source for recording in recordings))

    def repeat(
        self, *recordings: Recording, links: Sequence[LinkAngles | None] | None = None
    ) -> tuple[FlexibleResult, ...]:
        """The same from each recording alone, for means and coefficients of variation as in the paper's table I."""
        seen = _each(links, len(recordings))
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

    def _runs(self, recording: Recording, angles: LinkAngles | None) -> list[Run]:
        motion = recording.select(self.robot.joint_names)
        require_torque(motion)
        if angles is None:
            if motion.link_position is None:
                raise IdentificationError(
                    f"{recording.source}: no positions of links; record encoders behind the gears as link_position, or "
                    "give the link angles of a camera"
                )
            time, link, same = motion.time, motion.link_position, self.clock != "own"
        else:
            time, link, same = angles.time, angles.position - angles.offsets, self.clock == "same"
        offset = 0.0
        if not same:
            try:
                offset = align_clocks(motion.time, motion.position, time, link, drift=False).offset
            except RecordingError as error:
                names = ", ".join(motion.joint_names)
                raise RecordingError(f"{recording.source}: joints {names}: {error}") from error
        check_links(motion, time + offset, link)
        try:
            return runs(motion, time, link, same_clock=same, offset=offset, band=self.band)
        except RecordingError as error:
            raise RecordingError(f"{recording.source}: {error}") from error

    def _result(
        self, layout: Layout, search: OutputError, solution: Solution, found: list[Run], sources: tuple[str, ...]
    ) -> FlexibleResult:
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
        return replace(result, remarks=remarks(result))

    def _run_found(self, layout: Layout, search: OutputError, solution: Solution, k: int, run: Run) -> RunFound:
        n, residuals = run.n_joints, search.residuals[k]
        names = residuals.terms.names(n)
        values = dict(zip(names, solution.runs[k][2 * n : 2 * n + len(names)], strict=True))
        errors = dict(zip(names, solution.run_errors[k][2 * n : 2 * n + len(names)], strict=True))
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
            zero_errors=np.array([errors.get(f"zero {i}", 0.0) for i in range(n)]),
            link_rms=np.array([rms.get(("link", i), np.nan) for i in range(n)]),
            torque_rms=np.array([rms.get(("motor", i), np.nan) for i in range(n)]),
            prediction=joined([of_run(layout, solution.values, run, motion, zero=zero, clock=correction)]),
        )


def _each(links: LinkAngles | Sequence[LinkAngles | None] | None, count: int) -> list[LinkAngles | None]:
    """Links' positions of each recording."""
    if links is None:
        return [None] * count
    given: list[LinkAngles | None] = [links] if isinstance(links, LinkAngles) else list(links)
    if len(given) != count:
        raise IdentificationError(
            f"links are given for {len(given)} of {count} recordings; give one LinkAngles, or None, for each"
        )
    return given


def _require_explained(result: FlexibleResult) -> None:
    """Refuse a fit that leaves much of some torque: a search that ended in a wrong place, or another arm's model."""
    for run in result.runs:
        varied = np.std(run.prediction.measured_torque, axis=0)
        for joint, left, size in zip(result.joint_names, run.torque_rms, varied, strict=True):
            if left > UNEXPLAINED * size:
                raise IdentificationError(
                    f"{run.source}: the best fit leaves {left / size:.0%} of joint '{joint}'s torque unexplained; "
                    "no parameters can be told from it: check the units and signs of torques and link angles, the "
                    "order of the joints and the camera's clock, or record a motion nearer to the resonance"
                )


def _rms(values: NDArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
