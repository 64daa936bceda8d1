"""What the identifications compute, on simulated recordings whose seeds are fixed, as numbers for a record.

Read by `benchmarks.golden_record`. Each part yields cases: what went in and what came out, reduced to plain values.
"""

import hashlib
import importlib
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))  # known problems are shared with the tests

from dynid_ros.identification import (
    FlexibleJointIdentification,
    GravityIdentification,
    LinkIdentification,
    LoadIdentification,
    OnlineIdentification,
    TorqueSensorCalibration,
    WrenchSource,
)
from dynid_ros.model import BaseParameters, FrictionModel, JointFriction, RobotModel
from dynid_ros.recording import Recording

DEEP = {
    "Samples": "dynid_ros.identification.static_samples",
    "TorsionIdentification": "dynid_ros.identification.flexible",
    "known_arm": "dynid_ros.identified.links",
    "load_identified": "dynid_ros.identified.identified_file",
}
"""What no package face offers, and the module that has it today."""
ESTIMATORS = ("consistent", "weighted", "ordinary", "huber", "sequential", "error_model", "ridge", "minimum_norm")
ARMS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand", None),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", "wrist_3_link", None),
    "tiago": ("tiago_description/robots/tiago_no_hand.urdf", "arm_tool_link", None),
}
SHORT, ENDS, LONG = 12, 3, 300
Case = tuple[str, dict[str, Any], dict[str, Any]]
"""Name, inputs and results."""


def deep(name: str) -> Any:
    """Find what no package face offers."""
    return getattr(importlib.import_module(DEEP[name]), name)


def reduced(value: Any) -> Any:
    """Turn a value into plain ones; long arrays become their ends, norm and sums, long lists of texts a digest."""
    for kinds, reduce in REDUCERS:
        if isinstance(value, kinds):
            return reduce(value)
    raise TypeError(f"a golden record holds no {type(value).__name__}; take its numbers")


def _of_text(text: str) -> Any:
    if len(text) <= LONG:
        return text
    return {"digest": _digest(text), "lines": text.count("\n") + 1, "first": text.splitlines()[0][:LONG]}


def _of_number(value: float) -> Any:
    return float(f"{value:.12g}") if math.isfinite(value) else str(float(value))


def _of_mapping(values: Mapping) -> dict[str, Any]:
    return {key.name if isinstance(key, Enum) else str(key): reduced(entry) for key, entry in values.items()}


def _of_recording(recording: Recording) -> dict[str, Any]:
    names = ("time", "position", "velocity", "torque", "link_position")
    found = {name: getattr(recording, name) for name in names if getattr(recording, name) is not None}
    wrenches = {topic: np.hstack([w.force, w.torque]) for topic, w in (recording.wrenches or {}).items()}
    return {"joints": list(recording.joint_names)} | _of_mapping(found | wrenches)


def _of_list(values: list) -> Any:
    if values and all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in values):
        whole = all(isinstance(v, (int, np.integer)) for v in values)
        return _of_array(np.array(values, dtype=int if whole else float))
    if len(values) > SHORT and all(isinstance(v, str) for v in values):
        return {
            "count": len(values),
            "digest": _digest("\n".join(values)),
            "first": values[:ENDS],
            "last": values[-ENDS:],
        }
    return [reduced(v) for v in values]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _of_array(array: np.ndarray) -> Any:
    flat = array.ravel()
    if array.dtype.kind not in "fiub":
        return [reduced(v) for v in flat.tolist()]
    if flat.size <= SHORT:
        return [reduced(v) for v in flat.tolist()]
    if array.dtype.kind in "biu":
        return {"shape": list(array.shape), "digest": _digest(str(flat.astype(int).tolist())), "sum": int(flat.sum())}
    finite = np.isfinite(flat)
    kept = np.where(finite, flat, 0.0)
    found = {
        "shape": list(array.shape),
        "first": [reduced(v) for v in flat[:ENDS].tolist()],
        "last": [reduced(v) for v in flat[-ENDS:].tolist()],
        "largest": reduced(np.abs(kept).max()),
        "norm": reduced(np.linalg.norm(kept)),
        # Depends on the order.
        "signed_mean": reduced(np.mean(kept * np.cos(1.0 + np.arange(kept.size) % 101))),
    }
    return found if finite.all() else found | {"not_finite": int(np.sum(~finite))}


REDUCERS: tuple[tuple[Any, Callable], ...] = (
    (Enum, lambda value: value.name),
    ((bool, np.bool_), bool),
    (type(None), lambda value: value),
    (str, _of_text),
    ((int, np.integer), int),
    ((float, np.floating), _of_number),
    (Recording, _of_recording),
    (Mapping, _of_mapping),
    (np.ndarray, _of_array),
    ((list, tuple), lambda values: _of_list(list(values))),
)
"""What becomes of each kind of value, the first that fits."""


def picked(found: Any, *names: str) -> dict[str, Any]:
    """Values of attributes; what is callable is called."""
    values = {}
    for name in names:
        value = getattr(found, name)
        values[name] = value() if callable(value) else value
    return values


def saved(result: Any) -> dict[str, Any]:
    """Read the identified.yaml that a result writes, without the version."""
    with tempfile.TemporaryDirectory() as folder:
        document = yaml.safe_load(result.save(Path(folder) / "identified.yaml").read_text())
    document.get("source", {}).pop("version", None)
    return document


def example(name: str) -> RobotModel:
    """One of `ARMS`."""
    from pinocchio_arm import example_urdf  # noqa: PLC0415 needs packages that not every part needs

    path, tip, base = ARMS[name]
    return RobotModel.from_urdf(example_urdf(path), tip=tip, base=base)


def base_parameters() -> Iterator[Case]:
    """Structure of three arms, with friction and without."""
    friction = FrictionModel(JointFriction(offset=True, rotor_inertia=True))
    for name in ARMS:
        robot = example(name)
        for kind, model in (("without friction", None), ("with friction", friction)):
            base = BaseParameters.of_robot(robot, model)
            counts = {c: base.categories.count(c) for c in sorted(set(base.categories))}
            found = picked(base, "rank", "columns", "expressions", "categories", "combinations")
            yield f"{name}, {kind}", {"parameters": robot.parameters}, found | {"counts": counts}


def gravity() -> Iterator[Case]:
    """Moments of the Sarcos arm with noise, of a simulated recording, and what friction there is."""
    import known_problems as known  # noqa: PLC0415
    from gravity_experiment import demo_recording, demo_robot  # noqa: PLC0415

    aslant = (3.0, 2.0, -9.1)
    robot, rng = RobotModel.from_dh(known.sarcos_dh(), gravity=aslant), np.random.default_rng(1)
    q = known.single_rotations(rng.uniform(-1, 1, (2, 7)), np.pi, 12)
    direction = known.approach_directions(12, 14, 7)
    torque = known.dh_gravity_torque(known.sarcos_dh(), known.sarcos_masses(), known.SARCOS_MOMENTS, q, aslant)
    torque = torque + np.linspace(-2, 2, 7) + np.linspace(0.5, 1.5, 7) * direction + rng.normal(0, 0.3, q.shape)
    samples = static_samples(q, torque, direction)
    fresh = np.random.default_rng(2).uniform(-np.pi, np.pi, (20, 7))
    for label, settings in (
        ("global", {}),
        ("recursive", {"estimator": "recursive"}),
        ("own torque only", {"own_torque_only": True}),
    ):
        result = GravityIdentification(robot, **settings).fit_samples(samples)
        yield f"Sarcos, {label}", {"q": q, "torque": torque}, _of_gravity(result, fresh)
    recording = demo_recording()
    result = GravityIdentification(demo_robot()).fit(recording)
    found = _of_gravity(result, fresh[:, :6]) | {"document": saved(result)}
    yield "demo arm", {"recording": recording}, found


def static_samples(q: np.ndarray, torque: np.ndarray, direction: np.ndarray) -> Any:
    """Samples of an arm at rest."""
    count = len(q)
    return deep("Samples")(
        position=q,
        velocity=np.zeros_like(q),
        torque=torque,
        direction=direction,
        static=np.ones(count, bool),
        time=np.arange(count, dtype=float),
        part=np.zeros(count, int),
    )


def _of_gravity(result: Any, fresh: np.ndarray) -> dict[str, Any]:
    found = picked(result, "parameters", "standard_errors", "confidence_intervals", "condition_number", "remarks")
    friction = {term: result.per_joint(term) for term in ("coulomb", "viscous", "offset")}
    predicted = {"predicted": result.predict(fresh), "predicted_std": result.predict_std(fresh)}
    return found | {"friction": friction, "summary": result.summary()} | predicted


def of_links(result: Any, *unseen: Recording) -> dict[str, Any]:
    """Numbers of a LinkResult."""
    estimate = result.base_parameters
    found = picked(result, "condition_number", "noise", "residual_rms", "torque_rms", "urdf_residual_rms", "n_samples")
    found |= picked(result, "parameters", "friction_coefficients", "remarks", "scores", "ranges")
    found["base"] = picked(estimate, "names", "expressions", "values", "standard_errors", "dof", "nominal")
    found["base"] |= {"intervals": estimate.confidence_intervals(), "covariance": estimate.covariance}
    return found | {"validation": [picked(result.validate(run), "rms", "relative_rms") for run in unseen]}


def links() -> Iterator[Case]:
    """Every estimator on a chain with a sliding joint, both kinds of equations, and friction that is chosen."""
    from link_problems import PLAIN, Drive, chain, run, ur10, wrong  # noqa: PLC0415

    robot = chain()
    fitted, unseen = [run(robot), run(robot, 1)], run(robot, 7)
    inputs = {"first": fitted[0], "second": fitted[1], "unseen": unseen}
    for estimator in ESTIMATORS:
        result = LinkIdentification(wrong(robot), friction=PLAIN, estimator=estimator).fit(*fitted)
        yield f"chain, {estimator}", inputs, of_links(result, unseen)
    for label, settings in (
        ("integral", {"equations": "integral", "friction": PLAIN}),
        ("white errors", {"errors": "white", "friction": PLAIN, "estimator": "weighted"}),
        ("friction chosen", {}),
    ):
        result = LinkIdentification(wrong(robot), **settings).fit(*fitted)
        yield f"chain, {label}", inputs, of_links(result, unseen)
    arm, drive = ur10(), Drive(rotor=1.0, stribeck=1.0, smoothing=0.01)
    recording, unseen = run(arm, 0, drive), run(arm, 7, drive)
    result = LinkIdentification(wrong(arm)).fit(recording)
    yield "ur10, friction chosen", {"recording": recording, "unseen": unseen}, of_links(result, unseen)


def of_load(result: Any, document: bool = True) -> dict[str, Any]:
    """Numbers of a LoadResult, and its document."""
    found = picked(result, "parameters", "mass", "center", "standard_errors", "confidence_intervals", "nuisance")
    found |= picked(result, "center_intervals", "is_loaded", "missing", "in_last_link", "summary")
    return found | ({"document": saved(result)} if document else {})


def load() -> Iterator[Case]:
    """A load by joint torques, with the arm known and with its file, and by a wrist sensor."""
    from load_experiments import LoadConditions, draw  # noqa: PLC0415
    from wrench_experiments import FT_300, carried_motion  # noqa: PLC0415

    experiment = draw(LoadConditions("panda", duration=10.0, unloaded=15.0), np.random.default_rng(0))
    robot, inputs = experiment.robot, {"unloaded": experiment.unloaded, "loaded": experiment.loaded}
    friction = JointFriction(offset=True, smoothing=0.02)
    settings: dict[str, Any] = {"friction": friction, "prior_weight": 1.0, "torque_gain_error": 0.003}
    arm = LinkIdentification(robot, **settings).fit(experiment.unloaded)
    yield "the arm alone", inputs, of_links(arm)
    yield "by torques", inputs, of_load(LoadIdentification(robot, arm, torque_gain_error=0.003).fit(experiment.loaded))
    with tempfile.TemporaryDirectory() as folder:
        path = arm.save(Path(folder) / "identified.yaml")
        known = deep("known_arm")(deep("load_identified")(path), robot)
        result = LoadIdentification(robot, known).fit(experiment.loaded)
    yield "by torques, arm from its file", inputs, of_load(result, document=False)
    carried = carried_motion("ur10", 10.0, 3)
    recording = carried.record(FT_300, np.random.default_rng(0))
    for label, source in (("", WrenchSource()), (", turned by none", WrenchSource(sensor_turn=False))):
        result = LoadIdentification(carried.robot, sensor=source).fit(recording)
        yield f"by a wrist sensor{label}", {"recording": recording}, of_load(result)


def online() -> Iterator[Case]:
    """A load followed live, which is put down; and links sample by sample."""
    from gravity_experiment import demo_robot  # noqa: PLC0415
    from online_experiment import believed, block, measured, moves, mujoco_torque  # noqa: PLC0415

    robot, rng = demo_robot(), np.random.default_rng(1)
    motion = moves(robot, 20.0, 100.0, rng, 0.6)
    q, torque = measured(robot, motion, mujoco_torque(robot, motion, [(0.0, block(1.5)), (12.0, None)]), rng)
    following = OnlineIdentification(robot, arm=believed(robot))
    found, names = {}, ("names", "values", "standard_errors", "decided", "rank")
    for k, time in enumerate(motion.time):
        following.sample(time, q[k], torque[k])
        if k in (500, 1100, len(q) - 1):
            estimate = following.estimate()
            found[f"after sample {k}"] = picked(estimate, *names) | {"load": of_load(estimate.load(), document=False)}
    inputs = {"time": motion.time, "q": q, "torque": torque}
    yield "load", inputs, found | {"changes": [asdict(change) for change in following.changes]}
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 300, robot.n_joints))
    torque = robot.inverse_dynamics(q, qd, qdd) + rng.normal(size=q.shape)
    following = OnlineIdentification(robot, "links", noise=np.linspace(1.0, 0.2, robot.n_joints), cutoff=None)
    for k in range(len(q)):
        following.update(0.01 * k, q[k], qd[k], qdd[k], torque[k])
    yield "links", {"q": q, "torque": torque}, picked(following.estimate(), *names)


def flexible() -> Iterator[Case]:
    """Single joints of a published arm, seen by cameras and by link encoders."""
    import flexible_experiments as experiments  # noqa: PLC0415

    for label, joint in (("camera", 2), ("encoders", 5)):
        experiment = experiments.shortened(experiments.single_joint(joint), 2.0)
        identification = FlexibleJointIdentification(experiment.robot)
        if label == "camera":
            result = identification.fit(experiment.recording, links=experiment.links)
        else:
            result = identification.fit(experiment.recording_with_encoders)
        found = picked(result, "names", "parameters", "standard_errors", "confidence_intervals", "decided", "stiffness")
        found |= picked(result, "resonances", "resonance_errors", "residual_rms", "iterations", "remarks")
        found["clocks"] = [picked(run, "clock_offset", "clock_offset_error") for run in result.runs]
        recording = experiment.recording if label == "camera" else experiment.recording_with_encoders
        yield label, {"recording": recording}, found | {"document": saved(result)}


def of_torsion(result: Any, *unseen: Recording) -> dict[str, Any]:
    """Numbers of a TorsionResult."""
    found: dict[str, Any] = picked(result, "joint_names", "cutoff", "remarks", "summary")
    for name, joint in result.joints.items():
        found[name] = picked(joint, "coefficients", "fastest", "zero", "noise", "torsion_rms", "held_out_rms", "delay")
        found[name] |= picked(joint, "standard_errors", "part_rms", "dof")
        found[name] |= picked(joint.stiffness, "value", "interval") | {"terms": [str(term) for term in joint.terms]}
        found[name]["ripples"] = [picked(ripple, "frequency", "amplitude") for ripple in joint.ripples]
    names = ("torsion_rms", "residual_rms", "offset", "centred_residual_rms", "plain_residual_rms")
    return found | {"validation": [picked(result.validate(run), *names) for run in unseen]}


def torsion() -> Iterator[Case]:
    """A simulated joint of known stiffness, whose encoder is late, and one with a ripple."""
    from torsion_recordings import flexible_joint  # noqa: PLC0415

    for label, settings in (("late", {"delay": 0.003}), ("ripple", {"ripple": 2e-4, "amplitude": 0.3})):
        recording, other = flexible_joint(3e4, **settings), flexible_joint(3e4, **settings, seed=3)
        result = deep("TorsionIdentification")().fit(recording)
        yield label, {"recording": recording, "other": other}, of_torsion(result, other)


def torque_sensors() -> Iterator[Case]:
    """Gains and offsets of an aslant arm, with positions and without."""
    import torque_sensor_bench as bench  # noqa: PLC0415

    for positions in (False, True):
        rng, robot = np.random.default_rng(4), bench.aslant_robot()
        truth = bench.Truth.draw(rng, robot, positions)
        samples, loaded = bench.experiment(truth, rng)
        settings = {"reference_mass": bench.MASS, "estimate_positions": positions}
        result = TorqueSensorCalibration(robot, **settings).fit_samples(samples, loaded)
        found = picked(result, "names", "parameters", "standard_errors", "confidence_intervals", "gain", "offset")
        found |= picked(result, "position_gain", "position_offset", "coulomb", "center", "condition_number", "nullity")
        found |= picked(result, "reasons", "residual_rms", "remarks", "summary") | {"document": saved(result)}
        if positions:  # these are of a direction in which nothing is known, and turn with the last digit
            for part in (found, found["document"]):
                part.pop("condition_number")
            found["document"]["torque_sensor_calibration"].pop("freedoms")
            found.pop("summary")
        yield f"positions {positions}", {"q": samples.position, "torque": samples.torque}, found


PARTS = (base_parameters, gravity, links, load, online, flexible, torsion, torque_sensors)
