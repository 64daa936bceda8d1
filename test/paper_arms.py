"""Provide arms and printed tables of papers on link identification, independent of the package."""

import numpy as np

from dynid_ros.model import RobotModel

PARAMETERS = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


def column(name: str) -> int:
    """Return the index of a parameter such as "mcx2" among the ten of each link."""
    return 10 * (int(name[-1]) - 1) + PARAMETERS.index(name[:-1])


def columns(names: str) -> list[int]:
    return [column(name) for name in names.split()]


def parameters(n_joints: int, **values: float) -> np.ndarray:
    """Return parameters (10 n,) with these entries and zeros."""
    vector = np.zeros(10 * n_joints)
    vector[[column(name) for name in values]] = list(values.values())
    return vector


# Atkeson, An and Hollerbach 1986: the MIT Serial Link Direct Drive Arm. Its frames are not a DH set.
MIT_L2 = 0.45
MIT_SINGLES = "mcx2 Ixy2 Ixz2 mcx3 mcy3 Ixy3 Ixz3 Iyz3 Izz3"
MIT_ZEROS = "m1 mcx1 mcy1 mcz1 Ixx1 Ixy1 Ixz1 Iyy1 Iyz1 m2 mcz2"
MIT_COMBINATIONS = {  # SP1 to SP6
    "SP1": {"mcz3": MIT_L2, "Iyz2": 1.0},
    "SP2": {"Ixx3": 1.0, "Iyy3": -1.0},
    "SP3": {"Izz2": 1.0, "Ixx3": 1.0},
    "SP4": {"Izz1": 1.0, "Ixx2": 1.0, "Ixx3": 1.0, "m3": MIT_L2**2},
    "SP5": {"Ixx2": 1.0, "Ixx3": 1.0, "Iyy2": -1.0},
    "SP6": {"mcz3": 1.0, "mcy2": -1.0},
}
MIT_SUMS = np.array([parameters(3, **terms) for terms in MIT_COMBINATIONS.values()])
MIT_CAD = np.array(  # Table 3
    [
        [67.13, 0.0, 2.432, 35.8257, 23.1568, 0.0, -0.3145, 20.4472, -1.2948, 0.7418],
        [53.01, 0.0, 3.4081, 16.6505, 7.9088, 0.0, 0.0, 7.6766, -1.5036, 0.6807],
        [19.67, 0.3108, 0.0, 0.3268, 0.1825, 0.0, -0.0166, 0.4560, 0.0, 0.3900],
    ]
).ravel()
MIT_ESTIMATE = np.array(  # Table 4
    [
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.33598],
        [0.0, -0.1591, 0.6776, 0.0, 4.1562, 0.3894, 0.0118, 5.2129, -0.6050, -0.8194],
        [1.8920, 0.4676, 0.0315, -1.0087, 1.5276, -0.0256, 0.0143, 1.8967, -0.0160, 0.3568],
    ]
).ravel()
MIT_MOVES = (  # degrees; each in 1.3 s
    ((330, 289.1, 230), (80, 39.1, -10)),
    ((330, 269.1, -30), (80, 19.1, 220)),
    ((80, 269.1, -30), (330, 19.1, 220)),
)
MIT_URDF = """<robot name="mit_arm">
  <link name="base"/><link name="link_1"/><link name="link_2"/><link name="link_3"/>
  <joint name="joint_1" type="continuous"><parent link="base"/><child link="link_1"/><axis xyz="0 0 1"/></joint>
  <joint name="joint_2" type="continuous"><parent link="link_1"/><child link="link_2"/><axis xyz="0 0 1"/>
    <origin xyz="0 0 0" rpy="1.5707963267948966 0 0"/></joint>
  <joint name="joint_3" type="continuous"><parent link="link_2"/><child link="link_3"/><axis xyz="0 0 1"/>
    <origin xyz="0 0 0.45" rpy="1.5707963267948966 0 0"/></joint>
</robot>"""


def mit_arm() -> RobotModel:
    return RobotModel.from_urdf(MIT_URDF)


def fifth_order(start: np.ndarray, end: np.ndarray, duration: float, samples: int) -> tuple[np.ndarray, ...]:
    """Return positions, velocities and accelerations (N, n) of the minimum-jerk move, including end points."""
    s = np.linspace(0.0, 1.0, samples)[:, None]
    change = end - start
    q = start + change * (10 * s**3 - 15 * s**4 + 6 * s**5)
    qd = change * (30 * s**2 - 60 * s**3 + 30 * s**4) / duration
    return q, qd, change * (60 * s - 180 * s**2 + 120 * s**3) / duration**2


def mit_motion() -> list[np.ndarray]:
    """Return q, qd and qdd (600, 3) of the paper's three moves."""
    moves = [fifth_order(np.radians(start), np.radians(end), 1.3, 200) for start, end in MIT_MOVES]
    return [np.concatenate(arrays) for arrays in zip(*moves, strict=True)]


# Khosla and Kanade 1987; parameters are about the distal frames.
def _dh(*rows: tuple[float, float, float], kinds: str = "") -> RobotModel:
    """Return a standard DH arm of rows a (m), alpha (degrees), d (m)."""
    names = {"R": "revolute", "P": "prismatic"}
    kinds = kinds or "R" * len(rows)
    table = [
        {"a": a, "alpha": np.radians(alpha), "d": d, "theta": 0.0, "type": names[kind]}
        for (a, alpha, d), kind in zip(rows, kinds, strict=True)
    ]
    return RobotModel.from_dh(table)


CYLINDRICAL_NOMINAL = parameters(3, m3=0.9, mcz3=0.27, m2=2.1, Izz1=0.7, Iyy2=0.7, Iyy3=0.6)  # Table 2
CYLINDRICAL_TRUTH = parameters(3, m3=2.5, mcz3=1.25, m2=5.0, Izz1=0.9, Iyy2=0.8, Iyy3=0.8)

CMU_TRUTH = parameters(  # Table 3; Izz3 - Ixx3 is 0.1
    3,
    **{"Ixz3": 0.1, "Iyz3": 0.15, "Iyy3": 0.2, "Ixy3": 0.15, "Izz3": 0.3, "Ixx3": 0.2, "mcx3": 0.49, "mcz3": 0.7},
    **{"Iyy2": 0.5, "mcx2": 1.1, "mcz2": 0.55, "mcy3": 0.525, "m2": 5.5, "m3": 3.5},
    **{"Izz1": 1.3, "mcx1": 2.7, "m1": 13.5},
)


def cylindrical_robot() -> RobotModel:
    return _dh((0, 0, 0), (0, -90, 0), (0, 0, 0), kinds="RPP")


def cmu_arm() -> RobotModel:
    """Return the positioning axes of the CMU Direct-Drive Arm II, with arbitrary lengths, which are not printed."""
    return _dh((0.38, 0, 0), (0.32, 90, 0), (0, -90, 0.25))


def cmu_arm_with_wrist() -> RobotModel:
    return _dh((0.38, 0, 0), (0.32, 90, 0), (0, -90, 0.25), (0, 90, 0), (0, -90, 0), (0, 0, 0.1))


def puma() -> RobotModel:
    return _dh((0, 90, 0), (0.43, 0, 0.15), (0.02, -90, 0), (0, 90, 0.43), (0, -90, 0), (0, 0, 0.06))


def cosine_motion(strokes, samples: int = 25) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, velocities, accelerations (N, n) of a motion to the stroke and back in 1 s, every 20 ms."""
    t = 0.02 * np.arange(1, samples + 1)[:, None]
    half = np.asarray(strokes) / 2
    rate = 2 * np.pi
    return (half * (1 - np.cos(rate * t)), half * rate * np.sin(rate * t), half * rate**2 * np.cos(rate * t))


def random_motion(n_joints: int, samples: int = 60) -> np.ndarray:
    """Return independent positions, velocities and accelerations (3, N, n) of up to 3."""
    return np.random.default_rng(11).uniform(-3.0, 3.0, (3, samples, n_joints))
