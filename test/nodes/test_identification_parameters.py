"""Test that an identification node with invalid parameters ends at the start with one reason."""

import demo_arm_model
import pytest
import rclpy

from dynid_ros.errors import DynidError, IdentificationError, ModelError, RecordingError
from dynid_ros.files.bounded import share_path
from dynid_ros.nodes.flexible_joint_identification import FlexibleJointIdentificationNode
from dynid_ros.nodes.gravity_identification import GravityIdentificationNode
from dynid_ros.nodes.link_identification import LinkIdentificationNode
from dynid_ros.nodes.load_identification import LoadIdentificationNode
from dynid_ros.nodes.torque_sensor_calibration import TorqueSensorCalibrationNode

GRAVITY = GravityIdentificationNode
LINKS = LinkIdentificationNode
LOAD = LoadIdentificationNode
SPRINGS = FlexibleJointIdentificationNode
SENSORS = TorqueSensorCalibrationNode
LIVE = {"live": True}
MODEL_FILE = "identified"
"""Placeholder of the path of a file with the links of the arm."""


@pytest.mark.parametrize(
    ("make_node", "parameters", "error", "words"),
    [
        (GRAVITY, {"effort_convention": "newton"}, RecordingError, "effort_convention 'newton' is unknown"),
        (GRAVITY, {"effort_convention": "motor_current"}, RecordingError, "needs gains"),
        (GRAVITY, {"estimator": "guess"}, DynidError, "estimator"),
        (GRAVITY, {"samples": "all"}, DynidError, "samples"),
        (GRAVITY, {"torque_offset": "1.5"}, DynidError, "torque_offset"),
        (LINKS, {"effort_convention": "''"}, RecordingError, "expected one of torque"),
        (LINKS, {"estimator": "guess"}, IdentificationError, "estimator is 'guess'; expected one of consistent"),
        (LINKS, {"friction": "grease"}, ModelError, "friction: 'grease' is no term"),
        (LINKS, {"prior_weight": -1.0}, DynidError, "'prior_weight' of node .* is -1.0; expected above 0"),
        (LINKS, {"cutoff": "high"}, DynidError, "cutoff"),
        (LINKS, {"tip_link": "hand"}, DynidError, "hand"),
        (SPRINGS, {"spring": "rubber"}, DynidError, "spring: 'rubber'"),
        (SPRINGS, {"clock": "sundial"}, DynidError, "clock is 'sundial'"),
        (SPRINGS, {"motor_terms": "[heat]"}, DynidError, "no term heat"),
        (SPRINGS, {"markers": "['=link_1']"}, DynidError, "'=link_1' names nothing"),
        (SENSORS, {"reference_mass": -1.0}, DynidError, "reference mass is -1 kg"),
        (SENSORS, {"reference_center": "[0.0, 0.0, 0.1]"}, DynidError, "without reference_mass"),
        (SENSORS, {"observe": True}, DynidError, "observe needs model_file"),
        (LOAD, LIVE, DynidError, "live needs model_file"),
        (LOAD, LIVE | {"model_file": "nowhere.yaml"}, DynidError, "nowhere.yaml: cannot be read"),
        (LOAD, LIVE | {"model_file": MODEL_FILE, "tare_file": "tare.yaml"}, DynidError, "takes no tare_file"),
        (
            LOAD,
            LIVE | {"model_file": MODEL_FILE, "publish_rate": 1e-300},
            DynidError,
            "publish_rate is 1e-300; expected 0.001 to 250",
        ),
        (LOAD, {"largest_error": ".nan"}, DynidError, "largest_error is nan; expected a finite number above 0"),
        (
            LOAD,
            LIVE | {"model_file": MODEL_FILE, "effort_convention": "gravity_compensated"},
            DynidError,
            "gravity is not in",
        ),
        (LOAD, {"source": "scales"}, DynidError, "source is 'scales'; expected one of torque, wrench"),
        (LOAD, {"source": "wrench", "wrench_acts_on": "arm"}, DynidError, "wrench_acts_on is 'arm'; expected one of"),
        (LOAD, {"source": "wrench", "wrench_frame": "tool"}, DynidError, "frame is 'tool'"),
        (LOAD, LIVE | {"source": "wrench", "effort_convention": "''"}, DynidError, "expected one of torque"),
    ],
)
def test_invalid_parameters_end_the_node_at_the_start(make_node, parameters, error, words, tmp_path, domain):
    urdf = share_path("config/demo_arm.urdf")
    defaults = {"robot_description": urdf, "effort_convention": "torque", "output": tmp_path / "out"}
    values = defaults | parameters
    if values.get("model_file") == MODEL_FILE:
        values["model_file"] = demo_arm_model.write(tmp_path / "identified.yaml", links=True)
    rclpy.init(args=["--ros-args", *(part for name in values for part in ("-p", f"{name}:={values[name]}"))])
    with pytest.raises(error, match=words):
        make_node()
