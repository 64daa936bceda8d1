"""Parameters from recordings."""

from dynid_ros.identification.flexible import FlexibleJointIdentification, FlexibleResult
from dynid_ros.identification.force_sensor.force_sensor import ForceSensorCalibration
from dynid_ros.identification.gravity.gravity import GravityIdentification
from dynid_ros.identification.gravity.result import GravityResult
from dynid_ros.identification.links.links import LinkIdentification
from dynid_ros.identification.links.result import LinkResult
from dynid_ros.identification.load.load import LoadIdentification
from dynid_ros.identification.load.result import LoadResult
from dynid_ros.identification.online.online import OnlineIdentification
from dynid_ros.identification.torque_sensors.result import TorqueSensorResult
from dynid_ros.identification.torque_sensors.torque_sensors import TorqueSensorCalibration
from dynid_ros.identification.wrench.source import WrenchSource

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
