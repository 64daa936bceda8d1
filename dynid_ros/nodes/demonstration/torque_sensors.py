"""Fifth act of the demo: the torque sensors go wrong, and are calibrated by the arm's own weight."""

from dynid_ros.jobs.demonstration.torque_sensors import judge_torque_sensors
from dynid_ros.nodes.demonstration.stage import COMPUTING_TIMEOUT, START_TIMEOUT, Stage, say
from dynid_ros.report.demonstration.act import Act

WRONG = {"torque_gain_error": [0.1], "torque_offset": [0.05]}
MOTION = {"motion": "poses", "target": "gravity", "count": 6, "dwell": 0.8, "approach": [0.03]}
NODE = "/torque_sensor_calibration"
STORY = (
    "The arm's torque sensors go wrong: gains by 10 %, offsets by 5 % of the range. But by now the weight of "
    "the arm is known. The arm rests in a few poses, and what each sensor reads there is held against what "
    "gravity makes: gain and offset of each sensor follow, without taking the arm apart.",
)


def torque_sensor_act(stage: Stage) -> None:
    """Play it; it is good if gains and offsets are found."""
    folder, robot = stage.output / "torque_sensors", stage.arm.robot
    stage.call.trigger("/simulator/reset")
    stage.announce("The torque sensors go wrong. Excitation: a few poses, from both sides.")
    stage.call.set_parameters("/simulator", WRONG)
    truth = stage.truth()
    parameters = {"model_file": stage.output / "gravity" / "identified.yaml", "output": folder}
    with stage.node("torque_sensor_calibration", parameters):
        stage.excitation.record()
        stage.announce("Gains and offsets, against the gravity that was identified before.")
        stage.call.wait(f"{NODE}/identify", timeout=START_TIMEOUT)
        say(stage.call.trigger(f"{NODE}/identify", timeout=COMPUTING_TIMEOUT))

    def judge() -> Act:
        title, pages = (
            "Torque sensors: calibrated in place",
            [("the calibration's report", "torque_sensors/report.html")],
        )
        return Act.of(title, STORY, judge_torque_sensors(robot, truth, folder), pages)

    stage.later("torque_sensors", judge)
