"""Arm in 3-D: in its present pose, as a ghost of the planned motion, and the obstacles around it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yourdfpy
from numpy.typing import ArrayLike
from viser import ViserServer
from viser.extras import ViserUrdf
from viser.transforms import SO3

from dynid_ros.collision.obstacles import Obstacle
from dynid_ros.collision.shapes import find_mesh
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel

GHOST_COLOR = (0.95, 0.6, 0.1, 0.45)
LINE_COLOR = (70, 110, 190)
GHOST_LINE_COLOR = (240, 150, 30)
OBSTACLE_COLOR = (150, 150, 150)
LINE_WIDTH_PX = 6.0
CAMERA_POSITION = (1.6, 1.6, 1.2)
CAMERA_TARGET = (0.0, 0.0, 0.4)
MIN_DRAWN_MOTION = 1e-3


class ShownArm:
    """Arm that is drawn in any pose, by the shapes of its URDF, or by lines where it has none.

    Attributes:
        frame: frame of the arm, which can be made invisible.
        has_shapes: whether the URDF has any shape that could be read.
    """

    def __init__(self, server: ViserServer, urdf: yourdfpy.URDF, robot: RobotModel, name: str, is_ghost: bool) -> None:
        self._robot = robot
        self._server = server
        self._name = name
        self._line_color = GHOST_LINE_COLOR if is_ghost else LINE_COLOR
        self.frame = server.scene.add_frame(name, show_axes=False, visible=not is_ghost)
        self.has_shapes = bool(urdf.scene is not None and urdf.scene.geometry)
        if self.has_shapes:
            color = GHOST_COLOR if is_ghost else None
            self._shapes = ViserUrdf(server, urdf, root_node_name=name, mesh_color_override=color)
        self._drawn = np.full(robot.n_joints, np.inf)
        self.place(np.zeros(robot.n_joints))

    def place(self, position: ArrayLike) -> None:
        """Draw the arm in a pose (n,), if it differs visibly from the drawn one."""
        pose = np.array(position, dtype=float)
        if np.abs(pose - self._drawn).max() < MIN_DRAWN_MOTION:
            return
        self._drawn = pose
        if self.has_shapes:
            angles = dict(zip(self._robot.joint_names, pose, strict=True))
            names = self._shapes.get_actuated_joint_names()
            self._shapes.update_cfg(np.array([angles.get(name, 0.0) for name in names]))
            return
        origins = self._robot.forward_kinematics(pose[None])[0, :, :3, 3]
        ends = np.vstack([np.zeros(3), origins])
        segments = np.stack([ends[:-1], ends[1:]], axis=1).astype(np.float32)
        self._server.scene.add_line_segments(f"{self._name}/lines", segments, self._line_color, thickness=LINE_WIDTH_PX)


class Scene:
    """Scene of the page, with remarks about shapes of the URDF that cannot be drawn."""

    def __init__(self, server: ViserServer, path: Path, robot: RobotModel) -> None:
        self._server = server
        self._missing: list[str] = []
        server.scene.set_up_direction("+z")
        server.initial_camera.position = CAMERA_POSITION
        server.initial_camera.look_at = CAMERA_TARGET
        server.scene.add_grid("/floor", width=3.0, height=3.0, cell_size=0.1)
        self.arm = ShownArm(server, self._read(path), robot, "/arm", False)
        self.ghost = ShownArm(server, self._read(path), robot, "/ghost", True)
        names = ", ".join(dict.fromkeys(self._missing))
        self.remarks = [f"no meshes: {names}; put them where the URDF expects them"] if names else []
        if not self.arm.has_shapes:
            self.remarks.append("the arm is drawn as lines, because no shape of the URDF can be read")

    def show_obstacles(self, obstacles: Sequence[Obstacle]) -> None:
        """Draw boxes, in place of those drawn before."""
        self._server.scene.add_frame("/obstacles", show_axes=False)
        for number, box in enumerate(obstacles):
            self._server.scene.add_box(
                f"/obstacles/{number}",
                color=OBSTACLE_COLOR,
                dimensions=tuple(2.0 * box.half),
                wxyz=SO3.from_matrix(box.rotation).wxyz,
                position=tuple(box.centre),
                opacity=0.6,
            )

    def _read(self, path: Path) -> yourdfpy.URDF:
        """Read the URDF with the shapes that exist, and note missing meshes."""

        def find(fname: str) -> str:
            try:
                return str(find_mesh(fname, [path.resolve().parent]))
            except CollisionError:
                self._missing.append(fname)
                return fname

        try:
            return yourdfpy.URDF.load(str(path), filename_handler=find, build_collision_scene_graph=False)
        except Exception as error:  # yourdfpy raises the exceptions of its readers of meshes
            self._missing.append(f"shapes of {path.name} ({type(error).__name__})")
            return yourdfpy.URDF.load(str(path), load_meshes=False, build_scene_graph=True)
