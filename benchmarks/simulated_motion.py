"""Position error over 10 s of commanded motion: MuJoCo models of one arm, fitted to the same recordings.

    pip install "mujoco[sysid]"
    python -m benchmarks.simulated_motion [--arms lever levers so101] [--seconds 20] [--seed 3]

The truth is an arm in MuJoCo with steps of 0.25 ms, whose masses differ by up to 30 % from the URDF and whose servos by
up to 20 % from the maker's numbers. `lever` is one servo of an SO-101 and `so101` its whole arm, recorded without and
with a known mass; `levers` are two drives in MIT mode with known gains. Four models follow the commands of another
recording in closed loop: the URDF with its own friction and the identified gains and delays; the maker's numbers, from
which mujoco.sysid starts; mujoco.sysid, which fits gains (where unknown), delays, friction, rotors and the inertia of
each link to the positions; and `dynid export --to mjcf` after `dynid identify`.
"""

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import sysid

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

import mit_arms
import servo_arms
from servo_arms import ServoArm, Servos

from dynid_ros.export.simulated import command_runs, follow_run, simulate_recording
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.servo.command_delay import with_estimated_delay
from dynid_ros.identification.servo.servo_identification import ServoIdentification
from dynid_ros.identified.servos import ServoDrive
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import EffortConvention, Recording
from dynid_ros.recording.effort import with_impedance_torque
from dynid_ros.simulation.mjcf import TIMESTEP_S, mjcf_text
from dynid_ros.simulation.replay import Replay, hold_others

MASS_KG = 0.2
CENTER_M = (0.0, 0.02, 0.08)
HISTORY = 200
"""Samples of control that a model keeps, so that the delay can be fitted up to 0.2 s."""
MAX_FACTOR = 5.0
"""Largest ratio of a fitted number to the maker's."""
ARMS: dict[str, tuple[Callable[..., ServoArm], Servos, bool]] = {
    "lever": (servo_arms.one, servo_arms.SO101, False),
    "levers": (mit_arms.two, mit_arms.TWO_DRIVES, True),
    "so101": (servo_arms.so101, servo_arms.SO101, False),
}
"""Arms with the maker's numbers, and whether their gains are known."""


def main() -> None:
    """Print the table of position errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", nargs="+", default=["lever", "levers"], choices=ARMS)
    parser.add_argument("--seconds", type=float, default=20.0, help="Duration of each recording that is fitted")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=25, help="Largest number of iterations of mujoco.sysid")
    arguments = parser.parse_args()
    if not hasattr(sysid, "optimize"):  # an empty module without the packages that it needs
        raise SystemExit('mujoco.sysid is not installed: pip install "mujoco[sysid]"')
    print("| arm | motion, mrad RMS | URDF | maker's numbers | mujoco.sysid | exported | seconds of both fits |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.arms:
        make, nominal, has_gains = ARMS[name]
        arm = make(arguments.seed)
        draw = mit_arms.record_drives if has_gains else _recorded
        fitted = [draw(arm, arguments.seconds)]
        if not has_gains:
            fitted.append(_recorded(arm, arguments.seconds, mass=MASS_KG, center=CENTER_M))
        unseen = draw(arm, 11.0)
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            model, servos = _identify(arm, fitted, Path(folder), has_gains=has_gains)
            ours = time.perf_counter() - start
            distance = simulate_recording(model, arm.robot, unseen, servos)
            runs = command_runs(arm.robot, _known_servos(arm, nominal, has_gains=has_gains), unseen)
        texts = [_text(arm, nominal, has_gains=has_gains)]
        start = time.perf_counter()
        texts.append(_fit(arm, nominal, fitted, has_gains=has_gains, iterations=arguments.iterations))
        theirs = time.perf_counter() - start
        errors = [_rms(Replay(text, arm.robot.joint_names), runs) for text in texts]
        numbers = [np.linalg.norm(distance.moved), np.linalg.norm(distance.position["URDF"]), *errors]
        numbers.append(np.linalg.norm(distance.position["exported"]))
        cells = " | ".join(f"{1e3 * value / np.sqrt(arm.robot.n_joints):.3g}" for value in numbers)
        print(f"| {name} | {cells} | {theirs:.0f}, {ours:.0f} |", flush=True)


def _recorded(arm: ServoArm, seconds: float, **mass: object) -> Recording:
    return servo_arms.record(arm, servo_arms.motion(arm, seconds, 50.0), **mass)


def _identify(arm: ServoArm, fitted: list[Recording], folder: Path, *, has_gains: bool) -> tuple[Path, Path]:
    """Return the files of the model and of the servos."""
    servos = folder / "servos.yaml"
    if not has_gains:
        identification = ServoIdentification(arm.robot, reference_mass=MASS_KG, reference_center=CENTER_M)
        identification.fit(fitted[0], with_mass=fitted[1:]).save(servos)
        return servos, servos
    gains = {name: arm.per_joint(name) for name in ("stiffness", "damping")}
    ServoIdentification(arm.robot, **gains).fit(*fitted).save(servos)
    convention = EffortConvention("impedance", **gains)
    torques = with_estimated_delay([with_impedance_torque(part, convention) for part in fitted], arm.robot)
    links = folder / "links.yaml"
    LinkIdentification(arm.robot, JointFriction(rotor_inertia=True)).fit(*torques).save(links)
    return links, servos


def _known_servos(arm: ServoArm, nominal: Servos, *, has_gains: bool) -> dict[str, ServoDrive]:
    """Return the servos that are known before any fit: the maker's, with the true gains of drives in MIT mode."""
    values = arm.servos if has_gains else nominal
    n = arm.robot.n_joints
    rows = [np.broadcast_to(np.asarray(value, float), n) for value in (values.stiffness, values.damping, nominal.delay)]
    return {
        name: ServoDrive(*row, np.nan, np.nan, np.nan, np.nan)
        for name, *row in zip(arm.robot.joint_names, *(part.tolist() for part in rows), strict=True)
    }


def _text(arm: ServoArm, nominal: Servos, *, has_gains: bool) -> str:
    """Return the MJCF of the URDF with the maker's values."""
    robot = arm.robot
    fields = {"armature": nominal.armature, "damping": nominal.viscous, "frictionloss": nominal.friction}
    joints = {field: np.broadcast_to(np.asarray(value, float), robot.n_joints) for field, value in fields.items()}
    urdf = hold_others(robot.urdf or "", robot.joint_names, robot.posture)
    return mjcf_text(urdf, robot, joints, servos=_known_servos(arm, nominal, has_gains=has_gains))


def _fit(arm: ServoArm, nominal: Servos, fitted: list[Recording], *, has_gains: bool, iterations: int) -> str:
    """Return the MJCF of the fit of mujoco.sysid to positions."""
    names = arm.robot.joint_names
    specs = []
    for k in range(len(fitted)):
        spec = mujoco.MjSpec.from_string(_text(arm, nominal, has_gains=has_gains))
        if k:
            weight = spec.body(arm.robot.tip).add_body(name="weight", pos=CENTER_M, mass=MASS_KG)
            weight.explicitinertial = True
            weight.inertia = [1e-7] * 3
        for name in names:
            spec.actuator(name).nsample = HISTORY
            spec.add_sensor(
                name=f"{name}_pos",
                type=mujoco.mjtSensor.mjSENS_JOINTPOS,
                objname=name,
                objtype=mujoco.mjtObj.mjOBJ_JOINT,
            )
        specs.append(spec)
    parameters = sysid.ParameterDict()
    for name in names:
        for field, change in _CHANGES.items():
            if field == "kp" and has_gains:
                continue
            value = _read(specs[0], name, field)
            modifier = partial(_change, name, change)
            parameters.add(
                sysid.Parameter(f"{name} {field}", value, value / MAX_FACTOR, value * MAX_FACTOR, modifier=modifier)
            )
    model = specs[0].compile()
    for body in range(1, model.nbody):
        if model.body_dofnum[body] and model.body_mass[body]:
            kind = sysid.InertiaType.Pseudo
            name = model.body(body).name
            set_inertia = partial(_set_inertia, name)
            parameters.add(sysid.body_inertia_param(specs[0], model, name, inertia_type=kind, modifier=set_inertia))
    sequences = []
    servos = _known_servos(arm, nominal, has_gains=has_gains)
    for k, (spec, recording) in enumerate(zip(specs, fitted, strict=True)):
        (run, *_) = sorted(command_runs(arm.robot, servos, recording), key=lambda run: -len(run.time))
        times = np.arange(0.0, run.grid[-1] - run.grid[0], TIMESTEP_S)
        control = np.column_stack([command.at(run.grid[0] + times) for command in run.commands])
        # Sensors of a rollout refer to the previous step, which would shorten the delays by one step: use the state.
        signals = [(name, sysid.SignalType.MjStateQPos) for name in names]
        measured = sysid.TimeSeries.from_names(run.time - run.grid[0], run.position, spec.compile(), signals)
        state = _initial_state(spec.compile(), names, run)
        series = sysid.TimeSeries(times, control)
        sequences.append(sysid.ModelSequences(f"run {k}", spec, "run", state, series, measured))
    residual = sysid.build_residual_fn(models_sequences=sequences)
    with contextlib.redirect_stdout(sys.stderr):
        fitted_parameters, _ = sysid.optimize(
            parameters, residual, optimizer="mujoco", verbose=False, max_iters=iterations
        )
    sysid.model_modifier.apply_param_modifiers_spec(fitted_parameters, specs[0])
    specs[0].compile()
    return specs[0].to_xml()


def _change(name: str, change: Callable, spec: mujoco.MjSpec, parameter: Any) -> None:
    change(spec, name, float(parameter.value[0]))


def _set_inertia(name: str, spec: mujoco.MjSpec, parameter: Any) -> None:
    """Set the inertia of a body; the compiler of MuJoCo 4.0.0 refuses the modifier of mujoco.sysid."""
    pi = sysid.model_modifier.pi_from_theta(parameter.value)
    body = spec.body(name)
    body.mass = pi[0]
    body.ipos = pi[1:4] / pi[0]
    cross = sysid.model_modifier.skew(body.ipos)
    moments, axes = np.linalg.eigh(pi[4:].reshape(3, 3) + pi[0] * cross @ cross)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, axes.ravel())
    body.inertia = moments
    body.iquat = quaternion


def _set_damping(spec: mujoco.MjSpec, name: str, value: float) -> None:
    spec.joint(name).damping[0] = value


def _set_gain(spec: mujoco.MjSpec, name: str, value: float) -> None:
    spec.actuator(name).gainprm[0] = value
    spec.actuator(name).biasprm[1] = -value


_CHANGES = {
    "armature": lambda spec, name, value: setattr(spec.joint(name), "armature", value),
    "frictionloss": lambda spec, name, value: setattr(spec.joint(name), "frictionloss", value),
    "damping": _set_damping,
    "delay": lambda spec, name, value: setattr(spec.actuator(name), "delay", value),
    "kp": _set_gain,
}


def _read(spec: mujoco.MjSpec, name: str, field: str) -> float:
    if field == "kp":
        return float(spec.actuator(name).gainprm[0])
    owner = spec.actuator(name) if field == "delay" else spec.joint(name)
    return float(np.ravel(getattr(owner, field))[0])


def _initial_state(model: mujoco.MjModel, names: tuple[str, ...], run: object) -> np.ndarray:
    """Return the state at the start of a run, including the delayed commands."""
    data = mujoco.MjData(model)
    before = TIMESTEP_S * np.arange(-HISTORY, 0)
    for j, name in enumerate(names):
        data.qpos[model.joint(name).qposadr[0]] = run.motion.position[0, j]
        data.qvel[model.joint(name).dofadr[0]] = run.motion.velocity[0, j]
        mujoco.mj_initCtrlHistory(
            model, data, model.actuator(name).id, before, run.commands[j].at(run.grid[0] + before)
        )
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


def _rms(replay: Replay, runs: list) -> float:
    errors = np.concatenate([follow_run(replay, run) - run.position for run in runs])
    return float(np.linalg.norm(np.sqrt(np.mean(errors**2, axis=0))))


if __name__ == "__main__":
    main()
