"""Call exported C code from Python, without this package.

    dynid export --model identified.yaml --urdf arm.urdf --to c --output arm.c
    python examples/exported_arm.py arm.c 0.1 -0.5 0.3 ...

compiles the exported source and prints the gravity torque of each joint (N m) at a pose (rad).
"""

import ctypes
import subprocess
import sys
from pathlib import Path

source = Path(sys.argv[1]).resolve()
pose = [float(argument) for argument in sys.argv[2:]]
library = source.with_suffix(".so")
subprocess.run(["cc", "-std=c99", "-O2", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
c_gravity_torque = getattr(ctypes.CDLL(str(library)), f"{source.stem}_gravity_torque")


def gravity_torque(q: list[float]) -> list[float]:
    """Return the gravity torque of each joint without a payload, N m."""
    joint_vector = ctypes.c_double * len(q)
    torque = joint_vector()
    c_gravity_torque(joint_vector(*q), None, torque)
    return list(torque)


print(*gravity_torque(pose))
