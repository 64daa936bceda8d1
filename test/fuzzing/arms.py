"""Valid documents of the planar arm, the starting points of the fuzzer."""

# ruff: noqa: E501 - tables of inputs

import math
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import planar_arm

from dynid_ros.control.contact import ContactMonitor
from dynid_ros.control.external_torque import MomentumObserver, TorqueUncertainty
from dynid_ros.identified.links import KnownArm, known_arm, link_model
from dynid_ros.model import RobotModel

GRIPPER = (
    '<link name="tool"><inertial><mass value="0.5"/><inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/>'
    '</inertial></link><joint name="mount" type="fixed"><parent link="link_3"/><child link="tool"/>'
    '<origin xyz="0 0 0.1" rpy="0 1.5 0"/></joint>'
    '<link name="finger"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>'
    '<joint name="finger_joint" type="prismatic"><parent link="link_2"/><child link="finger"/>'
    '<axis xyz="0 1 0"/><limit lower="0" upper="0.05" velocity="1" effort="5"/><mimic joint="joint_1"/></joint></robot>'
)


RESIDUAL_RMS_NM = 0.05


def write_urdf(rich: bool = False) -> str:
    """Return the URDF with one element per line; `rich` adds a tool and a finger."""
    text = planar_arm.urdf()
    root = ET.fromstring(text.replace("</robot>", GRIPPER) if rich else text)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")


def create_robot() -> RobotModel:
    """Return the model of the planar arm."""
    return RobotModel.from_urdf(planar_arm.urdf())


def create_identified() -> dict[str, Any]:
    """Return an `identified.yaml` document with all optional sections."""
    arm = create_robot()
    document: dict[str, Any] = planar_arm.document() | {
        "source": {"recordings": ["run"], "settings": {"a": 1}, "version": "0"},
        "links": {
            name: {"mass": mass, "mass_moment": [mass * c, 0.0, 0.0], "inertia": [0.01, 0.0, 0.0, 0.3, 0.0, 0.3], "std": None}
            for name, mass, c in zip(arm.link_names, planar_arm.MASS, planar_arm.CENTRE, strict=True)
        },
        "friction": {
            joint: {
                "coulomb": 0.5, "viscous": 0.2, "offset": 0.01, "rotor_inertia": None, "smoothing": 0.01, "dead_zone": 0.0,
                "stribeck_velocity": None, "terms": ["coulomb", "viscous", "offset"], "std": None,
            }
            for joint in arm.joint_names
        },
        "residual_rms": dict.fromkeys(arm.joint_names, RESIDUAL_RMS_NM),
        "signals": {"cutoff": 20.0, "motion_cutoff": 10.0, "reason": "so"},
        "load": {
            "loaded": True, "mass": 1.5, "center": [0.01, 0.0, 0.05], "inertia": [0.01, 0.0, 0.0, 0.01, 0.0, 0.01],
            "frame": "link_3", "interval": {"mass": [1.4, 1.6]}, "std": {"mass": 0.05},
            "estimate": {"parameters": [1.5, 0.015, 0.0, 0.075, *[0.01] * 6], "std": [0.05] * 10},
            "source": {"recordings": ["loaded"]},
        },
        "flexible_joints": {
            joint: {
                **law, "motor_inertia": 0.5, "motor_viscous": 1.0, "link_coulomb": 0.1, "link_viscous": 0.1,
                "decided": {"stiffness": True},
            }
            for joint, law in {
                "joint_1": {"spring": "linear", "stiffness": 2e4},
                "joint_2": {"spring": "cubic", "stiffness": 5e3, "cubic": 1e3},
                "joint_3": {"spring": "dead_zone", "stiffness": 1e4, "dead_zone": 0.001},
            }.items()
        },
        "torque_sensors": {
            joint: {"gain": 1.1, "offset": 0.2, "position_gain": 1.0, "position_offset": 0.0, "std": {"gain": 0.01}}
            for joint in arm.joint_names
        },
    }  # fmt: skip
    size = KnownArm(link_model(document, arm)).decided_columns.size
    document["base_covariance"] = [" ".join(["0"] * i + ["0.01"]) for i in range(size)]
    document["base_gain_shifts"] = [" ".join(["0.1"] * size)] * 3
    return document


def create_obstacles() -> list[dict[str, Any]]:
    """Return two obstacles near the arm."""
    return [
        {"name": "table", "size": [1.0, 2.0, 0.1], "position": [0.5, 0.0, -0.3], "rpy": [0.0, 0.1, 0.0]},
        {"name": "wall", "size": [0.1, 3.0, 3.0], "position": [-1.0, 0.0, 0.0]},
    ]


def create_trajectory() -> dict[str, Any]:
    """Return a planned motion of six samples."""
    rows = [[0.1 * math.sin(i), 0.2, -0.1 * i] for i in range(6)]
    return {
        "format": "dynid-trajectory/1",
        "joint_names": list(planar_arm.JOINTS),
        "time": [0.1 * i for i in range(6)],
        "position": rows,
        "velocity": rows,
        "acceleration": rows,
    }


def create_fourier() -> dict[str, Any]:
    """Return a planned motion as Fourier series."""
    joint = {"offset": 0.1, "sine": [0.1, -0.05, -0.05], "cosine": [0.1, -0.05, 0.0]}
    return {
        "format": "dynid-fourier/1",
        "base_frequency": 0.2,
        "joints": {name: dict(joint) for name in planar_arm.JOINTS},
    }


def create_collada() -> bytes:
    """Return a COLLADA mesh of one triangle."""
    return b"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="meter" meter="0.01"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 1 0.5</float_array>
<technique_common><accessor source="#pa" count="3" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
</accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene>
</COLLADA>
"""


def create_contact_monitor() -> ContactMonitor:
    """Return a contact monitor of the planar arm."""
    arm = known_arm(create_identified(), create_robot())
    return ContactMonitor(MomentumObserver(arm.model), TorqueUncertainty(arm, np.full(3, RESIDUAL_RMS_NM)))
