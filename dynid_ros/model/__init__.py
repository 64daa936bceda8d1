"""Models of serial arms: kinematics, dynamics and regressors, from URDF or Denavit-Hartenberg tables."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.model.base_parameters import BaseParameters
    from dynid_ros.model.chain import JointLimits
    from dynid_ros.model.friction import FrictionModel, JointFriction
    from dynid_ros.model.gravity import GravityModel
    from dynid_ros.model.robot import RobotModel

__all__ = ["BaseParameters", "FrictionModel", "GravityModel", "JointFriction", "JointLimits", "RobotModel"]

offer(globals())
