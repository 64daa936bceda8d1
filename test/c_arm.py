"""Compile an exported arm, and call it from Python."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from dynid_ros.export.c_source import c_header, c_source
from dynid_ros.export.exported_arm import ExportedArm
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
"""Installed compilers."""


def arm_of(robot: RobotModel, friction: FrictionModel | None = None, coefficients=(), **changes) -> ExportedArm:
    """Return the exported arm with the links of its URDF."""
    gravity = GravityModel(robot)
    friction = friction or FrictionModel([JointFriction.none()] * robot.n_joints)
    values = {"load": None, "springs": None, "source": "identified.yaml", "parameters": robot.parameters} | changes
    values = {"moments": gravity.project(robot.parameters)} | values
    return ExportedArm(robot, gravity, friction=friction, coefficients=np.array(coefficients), **values)


class CArm:
    """Functions of a compiled arm, called with numpy arrays.

    Args:
        arm: arm to export.
        folder: folder of the files.
        compiler: name of the compiler.
    """

    def __init__(self, arm: ExportedArm, folder: Path, compiler: str = "gcc") -> None:
        if not shutil.which(compiler):
            pytest.skip(f"{compiler} is not installed")
        (folder / "arm.h").write_text(c_header(arm, "arm"), encoding="utf-8")
        (folder / "arm.c").write_text(c_source(arm, "arm", "arm.h"), encoding="utf-8")
        command = [compiler, *STRICT, "-shared", "-fPIC", "arm.c", "-o", "arm.so", "-lm"]
        built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        assert built.stderr == ""
        self.library = ctypes.CDLL(str(folder / "arm.so"))

        class Load(ctypes.Structure):
            _fields_ = (("mass", ctypes.c_double), ("center", ctypes.c_double * 3), ("inertia", ctypes.c_double * 6))

        class Memory(ctypes.Structure):
            count = max(len(arm.friction.memory_keys(arm.robot.n_joints)), 1)
            _fields_ = (("position", ctypes.c_double * arm.robot.n_joints), ("direction", ctypes.c_double * count))

        self.load_type = Load
        self.memory_type = Memory

    def torque(
        self, function: str, *motion: np.ndarray, load=None, memory=None, with_memory: bool = False
    ) -> np.ndarray:
        """Return the torque (n,) of one sample."""
        found = np.empty_like(motion[0])
        arrays = [np.ascontiguousarray(part, dtype=float) for part in motion]
        arguments = [_pointer(part) for part in arrays]
        arguments.append(None if load is None else ctypes.byref(load))
        if with_memory:
            arguments.append(None if memory is None else ctypes.byref(memory))
        getattr(self.library, f"arm_{function}")(*arguments, _pointer(found))
        return found


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
