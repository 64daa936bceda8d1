"""An arm whose links and friction are known, and how well."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.identification.identified_file import file_of
from dynid_ros.identification.links.document import link_model
from dynid_ros.identification.links.model import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.link_columns import LinkColumns


@dataclass(frozen=True, eq=False)
class KnownArm:
    """Model of an arm and the errors of what it was identified from.

    Attributes:
        model: links and friction.
        covariance: (k, k) of base parameters and friction, the gains of the torque sensors taken for exact; None: not
            known.
        gain_shifts: (n, k) change of base parameters and friction per relative error of each joint's torque gain.
        source: where it comes from, for messages.

    """

    model: LinkModel
    covariance: NDArray | None = None
    gain_shifts: NDArray | None = None
    source: str = "the arm's model"

    @classmethod
    def of(cls, model: LinkModel, estimate: BaseEstimate, source: str) -> KnownArm:
        """The arm that a link identification found."""
        covariance = estimate.covariance.copy()
        if estimate.gain_shifts is not None:
            covariance -= estimate.gain_error**2 * estimate.gain_shifts.T @ estimate.gain_shifts
        return cls(model, covariance, estimate.gain_shifts, source)

    @cached_property
    def columns(self) -> LinkColumns:
        """Columns of base parameters and friction."""
        return LinkColumns(self.model.robot, [(joint,) for joint in self.model.joints], self.model.friction.coupled)

    @property
    def decided_columns(self) -> NDArray:
        """(k,) of `columns`, in the order of the covariance."""
        return self.columns.independent([0] * self.model.robot.n_joints)

    @property
    def terms(self) -> NDArray:
        """(k,) where in the links' parameters, followed by the friction's coefficients, the decided columns are."""
        links, whole = self.columns.base.columns, self.columns.whole_base([0] * self.model.robot.n_joints).columns
        return np.array([*links, *whole[whole >= self.model.robot.parameters.size]], dtype=int)

    @property
    def values(self) -> NDArray:
        """(k,) base parameters and friction of the model, in the order of the covariance."""
        values = np.zeros(self.columns.size)
        chosen = self.columns.chosen([0] * self.model.robot.n_joints)
        values[chosen] = [*self.columns.base.project(self.model.parameters), *self.model.coefficients]
        return values[self.decided_columns]

    def document(self) -> dict:
        """Entries of `identified.yaml`: a string for each row of the covariance's lower triangle, and of the shifts."""
        entries = {}
        if self.covariance is not None:
            entries["base_covariance"] = [_text(row[: i + 1]) for i, row in enumerate(self.covariance)]
        if self.gain_shifts is not None:
            entries["base_gain_shifts"] = [_text(row) for row in self.gain_shifts]
        return entries


class Identified(Protocol):
    """Result of a link identification."""

    @property
    def known_arm(self) -> KnownArm:
        """The arm that it found."""


def as_known(arm: KnownArm | LinkModel | Identified) -> KnownArm:
    """An arm as it is known: of a model alone no errors are."""
    if isinstance(arm, KnownArm):
        return arm
    return KnownArm(arm) if isinstance(arm, LinkModel) else arm.known_arm


def known_arm(document: dict, robot: RobotModel) -> KnownArm:
    """The arm that an `identified.yaml` holds; without errors in a file that has none.

    Raises:
        IdentifiedFileError: of another robot, without links, or malformed.

    """
    model, source = link_model(document, robot), file_of(document)
    if "base_covariance" not in document:
        return KnownArm(model, source=source)
    rows = _rows(document, "base_covariance")
    shifts = _rows(document, "base_gain_shifts") if "base_gain_shifts" in document else None
    size = KnownArm(model).decided_columns.size
    if [len(row) for row in rows] != list(range(1, size + 1)):
        raise IdentifiedFileError(
            f"{source}: base_covariance has {len(rows)} rows, which are not the lower triangle of {size} parameters of "
            "links and friction; run the link identification again"
        )
    if shifts is not None and [len(row) for row in shifts] != [size] * robot.n_joints:
        raise IdentifiedFileError(
            f"{source}: base_gain_shifts are not {robot.n_joints} rows of {size}; run the link identification again"
        )
    lower = np.zeros((size, size))
    for i, row in enumerate(rows):
        lower[i, : i + 1] = row
    if np.any(np.diag(lower) < 0):
        raise IdentifiedFileError(f"{source}: base_covariance is no covariance; run the link identification again")
    covariance = lower + np.tril(lower, -1).T
    return KnownArm(model, covariance, None if shifts is None else np.array(shifts), source)


def _text(row: NDArray) -> str:
    return " ".join(f"{value:.6g}" for value in row)


def _rows(document: dict, name: str) -> list[list[float]]:
    """Rows of finite numbers."""
    try:
        values = [[float(number) for number in row.split()] for row in document[name]]
    except (AttributeError, TypeError, ValueError) as error:
        raise IdentifiedFileError(
            f"{file_of(document)}: {name} has no rows of numbers with spaces between; run the link identification again"
        ) from error
    if not all(np.isfinite(row).all() for row in values):
        raise IdentifiedFileError(
            f"{file_of(document)}: {name} has numbers that are not finite; run the link identification again"
        )
    return values
