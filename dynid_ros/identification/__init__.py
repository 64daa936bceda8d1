"""Parameters from recordings."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.identification.flexible import (
        FlexibleJointIdentification as FlexibleJointIdentification,
        FlexibleResult as FlexibleResult,
    )
    from dynid_ros.identification.gravity.gravity_identification import GravityIdentification as GravityIdentification
    from dynid_ros.identification.gravity.gravity_result import GravityResult as GravityResult
    from dynid_ros.identification.links.link_identification import LinkIdentification as LinkIdentification
    from dynid_ros.identification.links.link_result import LinkResult as LinkResult
    from dynid_ros.identification.load.load_identification import LoadIdentification as LoadIdentification
    from dynid_ros.identification.load.wrench_source import WrenchSource as WrenchSource
    from dynid_ros.identification.load_result import LoadResult as LoadResult
    from dynid_ros.identification.online.online_identification import OnlineIdentification as OnlineIdentification
    from dynid_ros.identification.servo.servo_identification import ServoIdentification as ServoIdentification
    from dynid_ros.identification.servo.servo_result import ServoResult as ServoResult
    from dynid_ros.identification.torque_sensors.torque_sensor_calibration import (
        TorqueSensorCalibration as TorqueSensorCalibration,
    )
    from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult as TorqueSensorResult


offer(globals())
