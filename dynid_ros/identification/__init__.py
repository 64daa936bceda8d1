"""Parameters from recordings."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.identification.flexible import FlexibleJointIdentification, FlexibleResult
    from dynid_ros.identification.gravity.gravity_identification import GravityIdentification
    from dynid_ros.identification.gravity.gravity_result import GravityResult
    from dynid_ros.identification.links.link_identification import LinkIdentification
    from dynid_ros.identification.links.link_result import LinkResult
    from dynid_ros.identification.load.load_identification import LoadIdentification
    from dynid_ros.identification.load.wrench_source import WrenchSource
    from dynid_ros.identification.load_result import LoadResult
    from dynid_ros.identification.online.online_identification import OnlineIdentification
    from dynid_ros.identification.servo.servo_identification import ServoIdentification
    from dynid_ros.identification.servo.servo_result import ServoResult
    from dynid_ros.identification.torque_sensors.torque_sensor_calibration import TorqueSensorCalibration
    from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult

__all__ = [
    "FlexibleJointIdentification",
    "FlexibleResult",
    "GravityIdentification",
    "GravityResult",
    "LinkIdentification",
    "LinkResult",
    "LoadIdentification",
    "LoadResult",
    "OnlineIdentification",
    "ServoIdentification",
    "ServoResult",
    "TorqueSensorCalibration",
    "TorqueSensorResult",
    "WrenchSource",
]

offer(globals())
