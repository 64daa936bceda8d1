"""Fourth act of the demo: the torque sensors go wrong, and are calibrated by the arm's own weight."""

from dynid_ros.jobs.torque_sensor_demonstration import write_torque_sensor_demonstration
from dynid_ros.nodes.demo_process import node_process
from dynid_ros.nodes.demo_stage import Stage, say

WRONG = {"torque_gain_error": [0.1], "torque_offset": [0.05]}
MOTION = {
    "motion": "poses",
    "target": "gravity",
    "count": 6,
    "dwell": 0.8,
    "approach": [0.03],
    "travel_speed_fraction": 1.0,
}
NODE = "/torque_sensor_calibration"


def torque_sensor_act(stage: Stage) -> bool:
    """Play it; True if gains and offsets are found."""
    folder = stage.output / "torque_sensors"
    stage.call.trigger("/simulator/reset")
    stage.announce("The torque sensors go wrong. Excitation: a few poses, from both sides.")
    stage.call.set_parameters("/simulator", WRONG)
    truth = stage.truth()
    parameters = {"model_file": stage.output / "identified.yaml", "output": folder}
    with node_process("torque_sensor_calibration", parameters, stage.output / "logs" / "torque_sensor_calibration.log"):
        stage.excite(MOTION)
        stage.announce("Gains and offsets, against the gravity that was identified before.")
        say(stage.call.trigger(f"{NODE}/identify"))
    stage.announce("Report.")
    verdict = write_torque_sensor_demonstration(stage.robot, truth, folder)
    say(verdict.text())
    return verdict.passed
