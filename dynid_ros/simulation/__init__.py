"""A simulated arm on MuJoCo: joint drives with friction, a position servo, torque motors, sensors with errors."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.simulation.arm import SimulatedArm as SimulatedArm
    from dynid_ros.simulation.controlled_arm import ArmHardware as ArmHardware, ControlledArm as ControlledArm
    from dynid_ros.simulation.descriptions import demo_arm_urdf as demo_arm_urdf, misjudged_urdf as misjudged_urdf
    from dynid_ros.simulation.drives import Drives as Drives, KnownFriction as KnownFriction, Springs as Springs
    from dynid_ros.simulation.replay import measure as measure, record as record, simulate as simulate
    from dynid_ros.simulation.sensors import (
        Camera as Camera,
        CameraView as CameraView,
        Sensors as Sensors,
        WrenchSensor as WrenchSensor,
        body_poses as body_poses,
        marker_poses as marker_poses,
        scattered_markers as scattered_markers,
    )
    from dynid_ros.simulation.trajectory_controller import (
        ForwardController as ForwardController,
        TrajectoryController as TrajectoryController,
    )
    from dynid_ros.simulation.trajectory_points import (
        CommandInterfaces as CommandInterfaces,
        GoalTolerances as GoalTolerances,
        TrajectoryPoints as TrajectoryPoints,
        TrajectorySettings as TrajectorySettings,
    )
    from dynid_ros.simulation.truth import ArmTruth as ArmTruth
    from dynid_ros.simulation.truth_tables import tabled_arm as tabled_arm, truth_table as truth_table


offer(globals())
