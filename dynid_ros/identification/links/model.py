"""A model of links and friction that predicts torques."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.identification.links.equations import LinkEquations
from dynid_ros.identification.validation import Validation, validate_torque
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals


@dataclass(frozen=True, eq=False)
class LinkModel:
    """Inertias and friction of an arm.

    Attributes:
        robot: kinematics and gravity; its own inertias are not used.
        parameters: (10 n,) of the links.
        friction: terms of the joints.
        coefficients: (f,) of friction, in the order of `friction.names(robot)`.
        signals: how recordings are filtered before they are compared; None: they cannot be.

    """

    robot: RobotModel
    parameters: NDArray
    friction: FrictionModel
    coefficients: NDArray
    signals: LinkSignals

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> NDArray:
        """(N, n) torque that the sensors read, friction and offsets included, of motions (N, n) each."""
        q, qd, qdd = (np.asarray(x, dtype=float) for x in (q, qd, qdd))
        rigid = self.robot.inverse_dynamics(q, qd, qdd, self.parameters)
        return rigid + self.friction.regressor(qd, qdd) @ self.coefficients

    def predict_recording(self, recording: Recording) -> NDArray:
        """(N, n) torque at every recorded sample, not filtered.

        Raises:
            IdentificationError: too few samples, or too slow a recording for the motion cut-off.

        """
        return self.predict(*self.signals.motion_at_samples(recording.select(self.robot.joint_names)))

    def compare(self, recording: Recording) -> tuple[NDArray, NDArray, NDArray]:
        """Time (M,), measured and predicted torque (M, n), both through the same low-pass, without rest at the ends.

        Raises:
            IdentificationError: no torque, or nothing is left of the recording.

        """
        columns = LinkColumns(self.robot, [(joint,) for joint in self.joints], self.friction.coupled)
        x = np.concatenate([columns.base.project(self.parameters), self.coefficients])
        # Columns of the friction terms are in the order of `columns`, which is that of the names.
        order = columns.chosen([0] * self.robot.n_joints)
        value = np.zeros(columns.size)
        value[order] = x
        equations: LinkEquations[LinkColumns] = LinkEquations(self.signals, [recording.select(self.robot.joint_names)])
        blocks = list(equations.blocks(columns))
        predicted = [
            np.column_stack([rows @ value[own] for rows, own in zip(block.rows, columns.of_joint, strict=True)])
            for block in blocks
        ]
        return (
            np.concatenate([block.time for block in blocks]),
            np.concatenate([block.torque for block in blocks]),
            np.concatenate(predicted),
        )

    def validate(self, recording: Recording) -> Validation:
        """Agreement per joint on a recording.

        Raises:
            IdentificationError: as `compare`.

        """
        _, measured, predicted = self.compare(recording)
        return validate_torque(recording.source, self.robot.joint_names, measured, predicted)

    @property
    def joints(self) -> list[JointFriction]:
        """Friction terms of each joint."""
        return list(self.friction.of(self.robot.n_joints))
