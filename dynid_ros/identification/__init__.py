"""Parameters from recordings."""

from dynid_ros.identification.flexible import FlexibleJointIdentification, FlexibleResult
from dynid_ros.identification.force_sensor import ForceSensorCalibration
from dynid_ros.identification.gravity import GravityIdentification
from dynid_ros.identification.gravity_result import GravityResult
from dynid_ros.identification.link_result import LinkResult
from dynid_ros.identification.links import LinkIdentification
from dynid_ros.identification.load import LoadIdentification
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.identification.online import OnlineIdentification
from dynid_ros.identification.torque_sensor_result import TorqueSensorResult
from dynid_ros.identification.torque_sensors import TorqueSensorCalibration
from dynid_ros.identification.wrench_source import WrenchSource

__all__ = [
    "FlexibleJointIdentification",
    "FlexibleResult",
    "ForceSensorCalibration",
    "GravityIdentification",
    "GravityResult",
    "LinkIdentification",
    "LinkResult",
    "LoadIdentification",
    "LoadResult",
    "OnlineIdentification",
    "TorqueSensorCalibration",
    "TorqueSensorResult",
    "WrenchSource",
]
