"""Motions of motors that tell most of an arm with flexible joints (Lightcap and Banks 2007, section II.B)."""

from typing import Any

from numpy.typing import ArrayLike

from dynid_ros.excitation.fourier_excitation import FourierExcitation
from dynid_ros.information.flexible_information import FlexibleInformation
from dynid_ros.information.steady_state import FlexibleJoints
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.workspace import Workspace


def flexible_excitation(
    robot: RobotModel,
    limits: MotionLimits,
    joints: FlexibleJoints,
    workspace: Workspace | None = None,
    *,
    base_frequency: float,
    harmonics: int = 8,
    criterion: str = "determinant",
    held: dict[str, float] | None = None,
    stiffness: bool = False,
    noise: ArrayLike = 1.0,
    speed_fraction: float = 0.5,
    **settings: Any,
) -> FourierExcitation:
    """Design of a periodic motion of the motors, whose links follow behind springs.

    Limits are those of the motors, seen from the links. Torque limits keep the springs from winding up: without them a
    design goes near a resonance as far as the prediction lets it.

    Args:
        robot: the arm; its nominal parameters are the prior of the links.
        limits: of the motors.
        joints: prior of springs, motors and friction.
        workspace: where the links may be; it is checked without deflections, so leave room for them.
        base_frequency: Hz, see `proposed_base_frequency`.
        harmonics: of the base frequency.
        criterion: "determinant", or a condition number as in the paper, which does not care how large a motion is.
        held: positions of the motors that brakes hold, by joint; the paper moves one joint at a time.
        stiffness: ask for the stiffness too (eq. 3); without, for what is in eq. 6.
        noise: standard deviation of the torques, one value or (n,), N m or N.
        speed_fraction: part of the velocity limits used.
        settings: others of `FourierExcitation`.

    Raises:
        TrajectoryError: a setting makes no sense.

    """
    source = FlexibleInformation(
        robot,
        joints,
        speed_fraction * limits.velocity,
        base_frequency=base_frequency,
        harmonics=harmonics,
        held=held,
        stiffness=stiffness,
        noise=noise,
    )
    return FourierExcitation(
        robot,
        limits,
        workspace,
        base_frequency=base_frequency,
        harmonics=harmonics,
        criterion=criterion,
        source=source,
        held=held,
        speed_fraction=speed_fraction,
        **settings,
    )
