"""Parent of the results of all identifications: values, covariance, intervals, table, file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynid_ros.display import Plotted, percent
from dynid_ros.estimation.estimate import CONFIDENCE_LEVEL, interval
from dynid_ros.identified.identified_file import DOF, as_number, new_document, save_identified
from dynid_ros.identified.validation import REPEATABILITY_KEY
from dynid_ros.model.base_parameters import parameter_table

if TYPE_CHECKING:
    from dynid_ros.identified.gravity_direction import GravityDirection
    from dynid_ros.identified.validation import Repeatability, Validation
    from dynid_ros.model import RobotModel


class Result(Plotted):
    """Estimates of an identification with their covariance.

    A child is a dataclass that has, as fields or properties, those that are declared below. A child whose intervals do
    not follow from one covariance overrides `standard_errors` and `confidence_intervals`. Its sections
    are in `sections`, its sentences in `verdict`, `joint_table`, `further_lines` and `notes`.
    """

    VALIDATION: ClassVar[str] = "validation"

    if TYPE_CHECKING:

        @property
        def robot(self) -> RobotModel:
            """Arm."""

        @property
        def names(self) -> Sequence[str]:
            """Names (k,) of the parameters."""

        @property
        def parameters(self) -> NDArray:
            """Values (k,); NaN where the data do not determine one."""

        @property
        def covariance(self) -> NDArray:
            """Covariance (k, k) of `parameters`."""

        @property
        def dof(self) -> Any:
            """Degrees of freedom (k,) of the variances, or one number; a child with others in each section has none."""

        @property
        def condition_number(self) -> float:
            """Condition number of the column-scaled problem; infinite if a parameter is undetermined."""

        @property
        def sources(self) -> Sequence[str]:
            """Names of the recordings."""

        @property
        def settings(self) -> dict:
            """Plain settings of the estimator."""

        @property
        def remarks(self) -> tuple[str, ...]:
            """Sentences on the result."""

        @property
        def missing(self) -> tuple[str, ...]:
            """Sentences on undetermined parameters, and on recordings that would determine them."""

        @property
        def direction(self) -> GravityDirection | None:
            """Direction of gravity that was found; None: it was given."""

        @property
        def repeatability(self) -> Repeatability | None:
            """Difference of torque between repetitions of a motion; None: not measured, or no motion is repeated."""

        @property
        def arm(self) -> dict | None:
            """Content of the arm's `identified.yaml`, to which the sections are added; None: they are alone."""

    else:
        missing = ()
        direction = arm = repeatability = None

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (k,) of `parameters`."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    def confidence_intervals(self, level: float = CONFIDENCE_LEVEL) -> NDArray:
        """Return lower and upper ends (k, 2) of the intervals by Student's t."""
        return interval(self.parameters, self.standard_errors, self.dof, level)

    def sections(self) -> dict[str, Any]:
        """Return the sections of `identified.yaml` that this identification writes."""
        raise NotImplementedError

    def document(self) -> dict:
        """Return the content of `identified.yaml`, without validations."""
        document = new_document(self.robot, self.sources, self.settings, self.direction) | self.sections()
        document["condition_number"] = as_number(self.condition_number)
        if np.isfinite(dof := np.median(getattr(self, "dof", np.inf))):
            document[DOF] = float(dof)
        document["remarks"] = list(self.remarks)
        return document

    def content(self, validations: Sequence[Validation] = ()) -> dict:
        """Return `document` with the list of validations, and the repeatability where it was measured."""
        content = {**self.document(), self.VALIDATION: [validation.document() for validation in validations]}
        return content if self.repeatability is None else content | {REPEATABILITY_KEY: self.repeatability.document()}

    def save(self, path: str | Path, validations: Sequence[Validation] = ()) -> Path:
        """Write `identified.yaml`, with the content of the arm's file where there is one."""
        content = self.content(validations)
        return save_identified(path, content if self.arm is None else self.merged(content))

    def merged(self, content: dict) -> dict:
        """Return the arm's content with that of this result added."""
        raise NotImplementedError

    def summary(self) -> str:
        """Return all lines for people: verdict, table by joint, further estimates and remarks."""
        return "\n".join([*self.verdict().splitlines(), *self.joint_table(), *self.further_lines(), *self.notes()])

    def verdict(self, validations: Sequence[Validation] = ()) -> str:
        """Return one or two lines on how good the result is."""
        agreement = unseen_agreement(validations)
        return f"{self._line()}{f'; {agreement}' if agreement else ''}."

    def joint_table(self, validations: Sequence[Validation] = ()) -> list[str]:
        """Return the lines of a table by joint, heads first; undetermined parameters are left out."""
        return [line for one in validations[:1] for line in one.table().splitlines()]

    def further_lines(self) -> list[str]:
        """Return lines of the summary on estimates that the table by joint does not hold."""
        return []

    def notes(self) -> list[str]:
        """Return the remarks in order of importance."""
        return list(self.remarks)

    def _line(self) -> str:
        return f"{self.robot.name}, {len(self.names)} parameters, condition {self.condition_number:.3g}"

    def _table(self) -> dict[str, Sequence]:
        return parameter_table(self.robot, self.names, self.parameters, self)

    def _table_of(self, owners: Sequence[str], units: Sequence[str]) -> dict[str, Sequence]:
        """Return the table of estimates (k,) whose joints and units do not follow from their names."""
        low, high = self.confidence_intervals().T
        numbers = {"value": self.parameters, "std": self.standard_errors, "low": low, "high": high}
        columns = {title: values.tolist() for title, values in numbers.items()}
        return {"parameter": self.names, "of": owners, "unit": units, **columns}


def unseen_agreement(validations: Sequence[Validation]) -> str:
    """Return words on the prediction of recordings that were not fitted; empty: no such recording."""
    relative = [error for one in validations for error in getattr(one, "relative_rms", ()) if np.isfinite(error)]
    if not relative:
        return ""
    names = ", ".join(Path(one.recording).stem for one in validations)
    return f"unseen torque ({names}) is predicted within {percent(max(relative))} of the RMS of each joint"
