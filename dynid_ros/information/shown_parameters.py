"""What the torques of a motion tell of base parameters, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.identifiability import Determinacy
from dynid_ros.information.judged_motion import JudgedMotion
from dynid_ros.information.quality_words import WeakParameter, combination
from dynid_ros.information.torque_columns import TorqueColumns

MATTERS = 1.0
"""Error of the torque, in its noise, from which on the error of a parameter makes it weak."""


@dataclass(frozen=True, eq=False)
class ShownParameters:
    """What the torques of a motion tell of the base parameters of an arm.

    Standard errors are for independent noise in the torques; what the model misses comes on top.

    Attributes:
        columns: what is asked; those parameters that no motion shows are its `hidden`.
        motion: what the motion covers, and the limits.
        noise: (n,) standard deviation of the torques, N m or N.
        of_joints: (n, k, k) normal equations of each torque.
        usual_of_joints: (n, k, k) those of as many samples spread at random over all limits.

    """

    columns: TorqueColumns
    motion: JudgedMotion
    noise: NDArray
    of_joints: NDArray = field(repr=False)
    usual_of_joints: NDArray = field(repr=False)

    @cached_property
    def information(self) -> NDArray:
        """(k, k) normal equations of all torques, weighted by their noise."""
        return self._weighted(self.of_joints)

    @cached_property
    def usual(self) -> NDArray:
        """(k, k) those of as many samples spread at random over all limits."""
        return self._weighted(self.usual_of_joints)

    def _weighted(self, of_joints: NDArray) -> NDArray:
        return np.einsum("jkl,j->kl", of_joints, self.noise**-2)

    @cached_property
    def determinacy(self) -> Determinacy:
        """What the normal equations decide."""
        return Determinacy.of(self.information, self.usual)

    @property
    def rank(self) -> int:
        """Combinations of parameters that the motion shows."""
        return self.determinacy.rank

    @property
    def full_rank(self) -> int:
        """Combinations that some motion shows."""
        return self.columns.size

    @property
    def condition_number(self) -> float:
        """Of the weighted regressor with columns of unit norm; infinite where the rank is short."""
        return self.determinacy.condition_number

    @property
    def unscaled(self) -> float:
        """Condition number of the columns as they are, which depends on units."""
        return self.determinacy.unscaled

    @property
    def singular_values(self) -> NDArray:
        """(k,) of the weighted regressor with columns of unit norm, descending."""
        return self.determinacy.singular_values

    @property
    def standard_errors(self) -> NDArray:
        """(k,) of the base parameters in `columns.units`; infinite: not shown."""
        return self.determinacy.standard_errors

    @cached_property
    def effects(self) -> NDArray:
        """(k,) what standard errors do to the torques of motions all over the limits, RMS, in units of their noise."""
        return self.standard_errors * np.sqrt(np.diag(self.usual) / self.motion.samples)

    @cached_property
    def excess(self) -> NDArray:
        """(k,) standard errors over those of as many samples spread at random over all limits."""
        return self.standard_errors / Determinacy.of(self.usual, self.usual).standard_errors

    @property
    def missing(self) -> tuple[str, ...]:
        """Expressions of base parameters that this motion does not decide, though another would."""
        return tuple(
            e for e, known in zip(self.columns.expressions, self.determinacy.decided, strict=True) if not known
        )

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Those of them without any effect on the torques of this motion."""
        return tuple(e for e, norm in zip(self.columns.expressions, self.determinacy.norms, strict=True) if not norm)

    @cached_property
    def together(self) -> tuple[str, ...]:
        """What the motion decides of those: sums such as "Iyy4 + Ixx5", each named by the parameter that leads it."""
        return tuple(combination(row, self.columns.names) for row in self.determinacy.combinations())

    @cached_property
    def weak(self) -> tuple[WeakParameter, ...]:
        """Decided parameters whose errors would show in torques, what moves them most first."""
        known, found = self.determinacy, []
        for i in map(int, np.flatnonzero(known.decided & (self.effects > MATTERS))):
            other, correlation = known.partner(i)
            found.append(
                WeakParameter(
                    self.columns.expressions[i],
                    self.columns.names[i],
                    float(self.standard_errors[i]),
                    self.columns.units[i],
                    float(self.effects[i]),
                    float(self.excess[i]),
                    float(known.inflation[i]),
                    self.columns.names[other],
                    correlation,
                )
            )
        return tuple(sorted(found, key=lambda parameter: -parameter.effect))

    @cached_property
    def joint_ranks(self) -> NDArray:
        """(n,) combinations of parameters that the torque of each joint alone shows."""
        pairs = zip(self.of_joints, self.usual_of_joints, strict=True)
        return np.array([Determinacy.of(own, usual).rank for own, usual in pairs])

    @property
    def prediction(self) -> NDArray:
        """(n,) what all errors together do to the torques of motions all over the limits, RMS, N m or N.

        Infinite where a parameter is missing.
        """
        if self.missing:
            return np.full(len(self.noise), np.inf)
        mean = self.usual_of_joints / self.motion.samples
        return np.sqrt(np.einsum("kl,jkl->j", self.determinacy.covariance, mean))
