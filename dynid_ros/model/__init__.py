"""Models of serial arms: kinematics, dynamics and regressors, from URDF or Denavit-Hartenberg tables."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.model.base_parameters import BaseParameters as BaseParameters
    from dynid_ros.model.chain import JointLimits as JointLimits
    from dynid_ros.model.friction import FrictionModel as FrictionModel, JointFriction as JointFriction
    from dynid_ros.model.gravity import GravityModel as GravityModel
    from dynid_ros.model.robot import RobotModel as RobotModel


offer(globals())
