"""An exported arm from Python, without this package: python examples/exported_arm.py arm.c 0.1 -0.5 0.3 ...

Compiles the source that `dynid export --to c --output arm.c` wrote, and prints the torque of gravity at a pose.
"""

import ctypes
import subprocess
import sys
from pathlib import Path

source, pose = Path(sys.argv[1]).resolve(), [float(word) for word in sys.argv[2:]]
library = source.with_suffix(".so")
subprocess.run(["cc", "-std=c99", "-O2", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
gravity = getattr(ctypes.CDLL(str(library)), f"{source.stem}_gravity_torque")


def gravity_torque(q: list[float]) -> list[float]:
    """Torque of each joint, N m, without a load."""
    joints = ctypes.c_double * len(q)
    torque = joints()
    gravity(joints(*q), None, torque)
    return list(torque)


torque = gravity_torque(pose)
print(*torque)
