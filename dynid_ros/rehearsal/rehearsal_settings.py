"""Settings of a rehearsal: its goals, its design, and the truth; they need no simulator."""

from __future__ import annotations

from dataclasses import dataclass

from dynid_ros.errors import DynidError
from dynid_ros.settings import check, part, setting

MAX_LINK_ERROR = 0.5
MAX_DROPPED = 0.5
MAX_TIMESTEP_S = 1e-3


@dataclass(frozen=True)
class TruthSettings:
    """Differences between the simulated robot and what its user knows of it."""

    link_error: float = setting(
        0.2, "largest relative error of masses and extents of the URDF's links", least=0, symbol="E"
    )
    friction_level: float = setting(
        0.05,
        "Coulomb friction relative to the largest torque of a joint, where the URDF has no <dynamics>; half to one and "
        "a half of it, with viscous friction and further terms",
        least=0,
        symbol="F",
    )
    torque_gain_error: float = setting(
        0.01, "standard deviation of the relative error of each torque sensor's gain", least=0, symbol="S"
    )
    torque_noise: float = setting(
        0.005, "standard deviation of a torque sample, relative to the largest torque of the joint", least=0, symbol="S"
    )
    position_noise: float = setting(2e-5, "standard deviation of a position sample, rad (m)", least=0, symbol="S")
    rate: float = setting(250.0, "joint states per second", unit="Hz", above=0, symbol="HZ")
    stamp_jitter: float = setting(1e-4, "standard deviation of the time stamps", unit="s", least=0, symbol="S")
    dropped: float = setting(0.01, "share of the joint states that are lost", least=0, symbol="P")
    load_mass: float | None = setting(
        None,
        "mass of the load; 0: no load; default: a tenth of the arm's mass, less for weak joints, at most 3 kg",
        unit="kg",
        least=0,
        symbol="KG",
    )

    def __post_init__(self) -> None:
        check(self, DynidError)
        for name, most in (("link_error", MAX_LINK_ERROR), ("dropped", MAX_DROPPED), ("rate", 1 / MAX_TIMESTEP_S)):
            if getattr(self, name) > most:
                raise DynidError(f"{name} is {getattr(self, name):g}; expected at most {most:g}")


@dataclass(frozen=True)
class RehearsalSettings:
    """Settings of a rehearsal: design, goals, and the truth."""

    design_time: float = setting(
        20.0, "duration of the search for the motion for links, s; the other searches take a quarter each", least=0
    )
    seed: int = setting(0, "seed of the motions, of the truth and of all noise")
    max_gravity_error: float = setting(
        0.03, "goal: largest gravity error of a joint, relative to its largest gravity torque", above=0, symbol="E"
    )
    max_torque_error: float = setting(
        0.1, "goal: RMS error of unseen torque of a joint, relative to its RMS torque", above=0, symbol="E"
    )
    max_load_error: float = setting(0.03, "goal: relative error of the mass of the load", above=0, symbol="E")
    truth: TruthSettings = part(TruthSettings)

    def __post_init__(self) -> None:
        check(self, DynidError)
