"""Torsion of joints that have encoders on motor and link, from recordings and without a model of the links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.spring_data import white_noise
from dynid_ros.identification.flexible.torsion_choice import TermChoice, TorsionRows
from dynid_ros.identification.flexible.torsion_result import JointTorsion, TorsionResult
from dynid_ros.identification.flexible.torsion_ripple import find_ripples
from dynid_ros.identification.flexible.torsion_signals import TorsionRun, torsion_cutoff, torsion_run
from dynid_ros.identification.flexible.torsion_stiffness import of_all, torsion_stiffness
from dynid_ros.identification.flexible.torsion_terms import columns, columns_of, joint_terms
from dynid_ros.recording import Recording

RATE = 50.0
"""Samples per second that the choice of terms looks at, Hz: all that the low-pass leaves."""
MOVED = 1e-2
"""Way below which a joint's motion tells nothing, rad."""


class TorsionIdentification:
    """Torsion q_m - q = zero + compliance * torque of the motor + what else pays.

    The parts of the torsion (`torsion_terms`) are chosen by predicting what was left out, sets that predict equally
    well are averaged, and their differences count as uncertainty of the stiffness.

    Args:
        cutoff: of the low-pass of motor positions and torques, Hz; None: from the motion, 5 to 10.
        neighbours: whether torques of the joints beside it may bend a joint. Only for recordings in which joints move
            one after the other or unlike each other: else a neighbour stands in for what the joint itself lacks, and
            other motions are predicted worse.
        torque_error: relative error of the torque, of motor constants and of what friction the model lacks, for the
            interval of the stiffness.

    Raises:
        IdentificationError: a cut-off of zero, or a setting below it.

    """

    def __init__(self, cutoff: float | None = None, *, neighbours: bool = False, torque_error: float = 0.05):
        if (cutoff is not None and not cutoff > 0) or not torque_error >= 0:
            raise IdentificationError(
                f"torsion: cutoff is {cutoff} and torque_error {torque_error}; expected Hz above 0, and 0 or more"
            )
        self.cutoff, self.neighbours, self.torque_error = cutoff, neighbours, torque_error

    def fit(self, *recordings: Recording) -> TorsionResult:
        """Fit to one or more recordings of the same joints.

        Position is the motor's seen through the gear, torque the motor's times the gear ratio, `link_position` the link
        encoder's. Zeros may differ from recording to recording.

        Raises:
            IdentificationError: no link positions, joints that differ, gaps, nothing that moves, too short recordings.

        """
        self._check(recordings)
        cutoff = torsion_cutoff(recordings) if self.cutoff is None else self.cutoff
        runs = [torsion_run(recording, cutoff) for recording in recordings]
        names, joints, remarks = recordings[0].joint_names, {}, []
        for j, name in enumerate(names):
            if reason := self._unusable(runs, j):
                remarks.append(f"{name}: {reason}, so nothing is said of its torsion")
            else:
                joints[name] = self._fit_joint(runs, j, names)
        if not joints:
            raise IdentificationError(f"{recordings[0].source}: no torsion can be identified. {'; '.join(remarks)}")
        return TorsionResult(names, joints, cutoff, tuple(remarks))

    def _fit_joint(self, runs: list[TorsionRun], joint: int, names: tuple[str, ...]) -> JointTorsion:
        terms = joint_terms(joint, runs[0], names, neighbours=self.neighbours)
        fastest = max(float(np.abs(run.velocity[run.settled, joint]).max()) for run in runs)
        choice = TermChoice(_rows(runs, joint, [columns(run, joint, terms, fastest) for run in runs]), terms)
        sets = choice.best()
        coefficients = np.mean([s.coefficients for s in sets], axis=0)
        column = int(columns_of(terms, "torque")[0])
        stiffness = torsion_stiffness(choice, sets, column, self.torque_error)
        if len(runs) > 1 and not stiffness.determined:
            alone = {f"recording {k + 1}": self._fit_joint([run], joint, names).stiffness for k, run in enumerate(runs)}
            stiffness = of_all(stiffness, alone)
        torsion = [run.torsion[run.settled, joint] for run in runs]
        model = JointTorsion(
            names[joint],
            terms,
            coefficients,
            fastest,
            0.0,
            (),
            stiffness,
            tuple(sets),
            float(np.sqrt(np.mean([white_noise(x) ** 2 for x in torsion]))),
            float(np.sqrt(np.mean([np.var(x) for x in torsion]))),
            float(np.mean([s.held_out_rms for s in sets])),
        )
        return _with_ripple(model, runs[0], joint)

    @staticmethod
    def _check(recordings: tuple[Recording, ...]) -> None:
        if not recordings:
            raise IdentificationError("torsion: no recording given")
        for recording in recordings:
            if recording.link_position is None:
                raise IdentificationError(
                    f"{recording.source}: no link positions; record the encoders behind the gears as link_position"
                )
            if recording.joint_names != recordings[0].joint_names:
                raise IdentificationError(
                    f"{recording.source}: joints are {', '.join(recording.joint_names)}; expected "
                    f"{', '.join(recordings[0].joint_names)} as in {recordings[0].source}"
                )

    @staticmethod
    def _unusable(runs: list[TorsionRun], joint: int) -> str:
        if not all(np.isfinite(run.torsion[:, joint]).all() for run in runs):
            return "no link position"
        if not all(np.isfinite(run.torque[:, joint]).all() for run in runs):
            return "no torque"
        way = max(float(np.ptp(run.position[run.settled, joint])) for run in runs)
        return f"it moves by {way:.2g} rad only" if way < MOVED else ""


def _with_ripple(model: JointTorsion, run: TorsionRun, joint: int) -> JointTorsion:
    """With the ripple and the zero of one run; in others phase and zero may differ."""
    torsion = model.smooth(run, joint)
    angle, rest = (x[run.settled] for x in (run.position[:, joint] - torsion, run.torsion[:, joint] - torsion))
    ripples = find_ripples(angle, rest, run.velocity[run.settled, joint], run.rate)
    return replace(model, ripples=ripples, zero=float(rest.mean()))


def _rows(runs: list[TorsionRun], joint: int, tables: list[np.ndarray]) -> TorsionRows:
    parts = []
    for number, (run, table) in enumerate(zip(runs, tables, strict=True)):
        kept = slice(run.settled.start, run.settled.stop, max(1, int(run.rate / RATE)))
        q, qd = run.position[kept, joint], run.velocity[kept, joint]
        torsion = run.low_pass.filter(run.torsion[:, joint])[kept]
        parts.append((table[kept], torsion, np.full(len(q), number), q, qd))
    return TorsionRows(*(np.concatenate(values) for values in zip(*parts, strict=True)))
