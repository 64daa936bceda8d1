"""What everything but the identifications computes, and what real recordings give, as numbers for a record.

Read by `benchmarks.golden_record`; see `benchmarks.golden_numbers`.
"""

import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.golden_numbers import Case, deep, of_links, of_torsion, picked
from dynid_ros import signals as filters
from dynid_ros.collision import Bodies, Obstacle
from dynid_ros.control import (
    CarriedLoad,
    FeedbackGains,
    GravityCompensator,
    IdentifiedFriction,
    JointSettings,
    LoadedGravity,
    Timing,
    load_gravity_torque,
)
from dynid_ros.excitation import FourierExcitation, JointByJoint, PayloadMotion, PoseSet, StaticRotation
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.information import MotionQuality
from dynid_ros.mocap import MarkerSet, axis_of_rotation, center_of_rotation, chain_angles, register
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.recording import Recording, check
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, Springs, TrajectoryPoints, demo_arm_urdf
from dynid_ros.trajectories import FourierSeries, MotionLimits, Trajectory, Workspace, minimum_jerk, move, stop

MARGIN = np.array([0.05, 0.05, 0.05, 0.05, 0.3, 0.05])
START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])


def mocap() -> Iterator[Case]:
    """Axis, centre, and cameras that are registered to an arm whose joints give way."""
    from hinge_markers import places, swing, turning  # noqa: PLC0415 needs packages that not every part needs
    from marker_experiment import experiment, haunted, noisy, swapped, ur10  # noqa: PLC0415

    markers = turning(swing(60.0), places(), np.random.default_rng(1), 3e-4).markers
    axis = axis_of_rotation(markers)
    center = center_of_rotation(markers, axis.direction)
    found = {"axis": picked(axis, "direction", "covariance", "noise", "travel", "standard_error")}
    found["center"] = picked(center, "point", "covariance", "radii", "noise", "standard_error")
    yield "hinge", {"markers": markers}, found
    rng, robot = np.random.default_rng(1), ur10()
    seen = experiment(rng, robot, frames=200, rate=50, deflection=np.deg2rad(0.3))
    positions = haunted(rng, swapped(rng, noisy(rng, seen.positions, 0.1), 0.05), 0.01)
    on = MarkerSet.on_links(robot, seen.links)
    for stiff in (True, False):
        registration = register(robot, on, seen.motor, positions, stiff=stiff)
        angles = chain_angles(robot, registration.markers, positions, registration.camera, seed=seen.motor)
        found = of_registration(registration) | {"angles": picked(angles, "position", "standard_errors")}
        yield f"ur10, stiff {stiff}", {"motor": seen.motor, "positions": positions}, found


def of_registration(found: Any) -> dict[str, Any]:
    """Numbers of a Registration."""
    names = ("camera", "offsets", "camera_errors", "place_errors", "offset_errors", "deflection", "noise")
    return picked(found, *names, "residual_rms", "used", "undecided", "remarks") | {"places": found.markers.places}


def of_findings(recording: Recording, robot: RobotModel | None) -> list[str]:
    """Severity, kind and words of each finding, in order."""
    return [f"{found.severity}, {found.kind}: {found}" for found in check(recording, robot, motion=True)]


def checks() -> Iterator[Case]:
    """Sound recordings and all faults that the tests put into them."""
    from clean_recordings import clean_case  # noqa: PLC0415
    from recording_faults import FAULTS  # noqa: PLC0415

    for seed, arm in enumerate(("planar", "demo")):
        case = clean_case(np.random.default_rng(seed), arm)
        yield f"sound, {arm}", {"recording": case.recording}, {"findings": of_findings(case.recording, case.robot)}
    for name in (name for name, kind in FAULTS.items() if "fourier" in kind.motions):
        rng = np.random.default_rng([1, *name.encode()])
        for _ in range(5):
            case = FAULTS[name].put(clean_case(rng, "planar"), rng)
            if case is not None:
                break
        else:
            continue  # it does not matter in these motions
        channels = of_findings(case.recording, None) if FAULTS[name].channel else None
        findings = {"findings": of_findings(case.recording, case.robot), "without a robot": channels}
        yield name, {"channels": np.hstack([case.recording.torque, case.recording.position])}, findings


def demo_arm() -> RobotModel:
    """The arm of the demonstration."""
    return RobotModel.from_urdf(demo_arm_urdf())


def of_trajectory(motion: Trajectory) -> dict[str, Any]:
    """A motion and its samples."""
    return picked(motion, "duration", "time", "position", "velocity", "acceleration")


def excitation() -> Iterator[Case]:
    """Designs of every kind; the search for Fourier motion has a seed, two starts, one process and no end of time."""
    import planar_arm  # noqa: PLC0415

    planar, robot = RobotModel.from_urdf(planar_arm.urdf()), demo_arm()
    limits, workspace = MotionLimits.of(robot, 8.0), Workspace(robot, 0.1, 0.1)
    quick: dict[str, Any] = {"base_frequency": 0.1, "harmonics": 3, "workers": 1, "candidates": 2, "starts": 2}
    quick |= {"design_time": 3600.0, "seed": 1}
    cautious: dict[str, Any] = {"position_margin": MARGIN, "speed_fraction": 0.8}
    own = MotionLimits.of(planar, 10.0)
    static = {"steps": 5, "dwell": 0.4, "speed_fraction": 0.8}
    designs = {
        "Fourier, condition": FourierExcitation(planar, own, criterion="condition", noise=1.0, **quick),
        "Fourier, default criterion": FourierExcitation(planar, own, noise=1.0, **quick),
        "static rotation": StaticRotation(robot, limits, workspace, **static),
        "joint by joint": JointByJoint(robot, limits, workspace, frequencies=[0.25], cycles=1, **cautious),
        "in steps": JointByJoint(robot, limits, workspace, motion="steps", steps=4, dwell=0.3, **cautious),
        "payload": PayloadMotion(robot, limits, workspace, position_margin=MARGIN, dwell=0.5),
        "poses": PoseSet(robot, limits, workspace, count=8, dwell=0.5, **cautious),
    }
    for name, design in designs.items():
        plan = design.plan()
        found = {"plan": timeless(json.loads(json.dumps(plan.as_dict(), default=np.ndarray.tolist)))}
        if name.startswith("Fourier"):
            found |= {"history": [value for _, value in plan.history]}
        yield name, {"lower": limits.lower, "upper": limits.upper}, found | {"motion": of_trajectory(plan.trajectory)}


def timeless(document: Any) -> Any:
    """Leave out what depends on how long a computation took."""
    if isinstance(document, dict):
        return {k: timeless(v) for k, v in document.items() if k not in ("history", "seconds", "design_time")}
    return document


def information() -> Iterator[Case]:
    """What motions tell: of an arm that moves, and of one whose joints are still."""
    from helpers.judged_motions import RATE, motion, ur10  # noqa: PLC0415

    robot = ur10()
    for label, still in (("all joints", ()), ("three still", (0, 1, 2))):
        samples = [array[::10] for array in motion(robot, still)]
        quality = MotionQuality.of(robot, *samples, rate=RATE / 10, noise=np.linspace(1, 0.2, 6))
        found = picked(quality, "rank", "full_rank", "condition_number", "unscaled", "singular_values")
        found |= picked(quality, "standard_errors", "missing", "enough", "advice", "summary")
        found["together"] = quality.determined_sums
        yield label, dict(zip("qva", samples, strict=True)), found | {"inflation": quality.identifiability.inflation}


def trajectories() -> Iterator[Case]:
    """Limits, moves, series, and a stop at some times."""
    robot = demo_arm()
    limits = MotionLimits.of(robot, 4.0)
    found: dict[str, Any] = {"limits": picked(limits, "lower", "upper", "velocity", "acceleration", "units")}
    found["poses"] = limits.poses(64)
    found["shortest"] = limits.shortest_move(START)
    motion = move(robot.joint_names, 0 * START, START, 2.5)
    found |= {"move": of_trajectory(motion), "sampled": of_trajectory(motion.sample(125.0))}
    found["minimum jerk"] = list(minimum_jerk(0 * START, START, 2.5, np.linspace(0, 2.5, 40)))
    for time in (0.3, 1.25, 2.2):
        found[f"stop at {time} s"] = of_trajectory(stop(motion, time, limits))
    yield "demo arm", {"start": START}, found
    rng = np.random.default_rng(3)
    cosine, sine = rng.normal(size=(2, 5, robot.n_joints))
    series = FourierSeries.at_rest(robot.joint_names, 0.1, sine.T, cosine.T)
    found = {"period": series.period, "largest": series.peaks(), "largest_jerk": series.peak_jerk()}
    found |= {"motion": of_trajectory(series.trajectory())}
    yield "Fourier", {"cosine": cosine, "sine": sine}, found


def collision() -> Iterator[Case]:
    """Room between links, floor and obstacles, with its gradient."""
    robot, rng = demo_arm(), np.random.default_rng(4)
    poses = rng.uniform(-1.5, 1.5, (60, robot.n_joints))
    bodies = Bodies.of(robot)
    box = Obstacle("box", [0.4, 0.05, 0.2], [0.6, 0.35, 0.6])
    for label, settings in (("lines", {}), ("bodies", {"bodies": bodies}), ("box", {"obstacles": [box]})):
        workspace = Workspace(robot, 0.05, 0.02, **settings)
        distances = workspace.distances(poses)
        gradient = distances.gradient(np.cos(np.arange(distances.room.size)).reshape(distances.room.shape))
        found = {"names": workspace.names, "room": distances.room, "gradient": gradient}
        yield label, {"poses": poses}, found | {"allowed": workspace.allowed(poses)}
    yield "shapes", {"poses": poses}, picked(bodies, "names", "radius", "start", "end", "without_shape", "left_out")


def signals() -> Iterator[Case]:
    """Filters, derivatives, resampling, periods, lags and clocks of noisy tones."""
    rng = np.random.default_rng(0)
    time = np.arange(0, 30, 0.005)
    clean = np.column_stack([np.sin(2 * np.pi * 0.7 * time) + 0.3 * np.cos(9.1 * time), np.cos(3.3 * time) ** 3])
    q = clean + 1e-4 * rng.normal(size=clean.shape)
    low_pass = filters.LowPass(8.0, 200.0)
    smooth = filters.filtered_motion(q, low_pass)
    found: dict[str, Any] = {"filtered": low_pass.filter(q), "reduced": low_pass.reduce(q)}
    found |= picked(low_pass, "edge", "decimation", "noise_factor") | {"gain": low_pass.gain(np.arange(0.0, 40.0, 4))}
    found |= {"motion": list(smooth), "central": list(filters.central_differences(q, 0.005))}
    found |= {"slopes": list(filters.differentiate(time, q, 0.05)), "five": filters.five_point_derivative(q, 0.005)}
    cutoff = filters.choose_cutoff(q, 200.0)
    found["cutoff"] = picked(cutoff, "bands", "valleys", "reason") | {"hertz": cutoff.low_pass.cutoff}
    stamps = 5 + np.cumsum(rng.choice([0.005, 0.006], len(time)))
    kept = np.abs(stamps - 15.0) > 0.4
    even = filters.resample(stamps[kept], q[kept])
    found["resampled"] = picked(even, "step", "gaps") | {"segments": [s.values for s in even.segments]}
    found["stale"] = filters.stale_rows(np.repeat(q[:40], 12, axis=0))
    found["spline"] = filters.GapSpline(time, q)(time[50:-50] + 0.0017)
    jittered = time + rng.uniform(-1e-4, 1e-4, len(time))
    found["stamps"] = filters.sample_times(jittered, q)._asdict()
    periodic = np.column_stack([np.sin(2 * np.pi * 0.2 * time), np.cos(2 * np.pi * 0.6 * time)]) + q - clean
    frequency = filters.base_frequency(time, periodic, 3)
    series = filters.FourierSeries.fit(time, periodic, 0.2, 3)
    found["periods"] = {"frequency": frequency}
    found["series"] = [series.evaluate(time[::50], derivative) for derivative in range(3)]
    found["lag"] = filters.time_lag(q[6:], q[:-6], 200.0)._asdict()
    yield "tones", {"q": q, "stamps": stamps}, found
    true = np.arange(5.0, 28.0, 0.004)
    links, robot_time = np.interp(true, time, clean[:, 0]), time + 0.002 * rng.uniform(-0.5, 0.5, len(time))
    camera_time, seen = 13.0 + (true - 16.0) * (1 + 1e-3), links[:, np.newaxis] + 1e-4 * rng.normal(size=(len(true), 1))
    aligned = filters.align_clocks(robot_time, q[:, :1], camera_time, seen)
    found = aligned._asdict() | {"in robot time": aligned.to_robot(camera_time)}
    yield "clocks", {"robot": robot_time, "camera": camera_time, "links": seen}, found


def compensation() -> Iterator[Case]:
    """Torques over scripts of faults, with feedback and friction; of an arm with a load, by its file."""
    from driven_pendulum import Arm, biased, gains, joint_settings  # noqa: PLC0415

    def there(arm: Any, position: list[float]) -> None:
        arm.position = position
        arm.run(0.05)

    scripts = {
        "ramps": lambda arm: (arm.compensator.disable(), there(arm, [0.9, 0.3]), arm.compensator.enable(arm.time)),
        "stale": lambda arm: arm.watch(0.12),
        "late": lambda arm: arm.run(0.15, dt=0.15),
        "nan": lambda arm: there(arm, [math.nan, 0.3]),
        "beyond limits": lambda arm: there(arm, [3.2, 0.3]),
        "jump": lambda arm: there(arm, [1.0, 1.3]),
        "missing": lambda arm: arm.compensator.fault(arm.time, "joint_states lacks joint elbow"),
        "torque": lambda arm: arm.compensator.replace(biased(math.nan), joint_settings()),
        "another model": lambda arm: arm.compensator.replace(biased(3.0), joint_settings(torque=(9.0, 3.0))),
        "stop": lambda arm: arm.compensator.stop(arm.time),
        "interrupt": lambda arm: arm.compensator.interrupt(arm.time, "the node ends"),
    }
    for name, script in scripts.items():
        arm = Arm().enabled()
        script(arm)
        arm.run(0.02).watch(0.3)
        arm.position = [1.0, 0.3]
        arm.run(0.6)
        middle = picked(arm.compensator, "state", "fault_reason", "faults", "limited", "torque")
        arm.compensator.enable(arm.time)
        commands = [[math.nan] * 2 if c is None else c for c in arm.run(1.2).commands]
        yield name, {}, {"middle": middle, "commands": np.array(commands), "state": arm.compensator.state}
    pulling = gains(stiffness=(30.0, 10.0), damping=(3.0, 1.0), coulomb=(0.5, 0.2), viscous=(0.1, 0.1))
    compensator = GravityCompensator(lambda q: [q[0], q[1]], joint_settings(feedback=pulling), Timing(ramp_time=0.5))
    torques = []
    for k in range(200):
        time, q = 0.01 * k, [0.3 * math.sin(0.02 * k), 0.2 * math.cos(0.01 * k)]
        if k == 2:
            compensator.enable(time)
        if k == 120:
            compensator.aim([0.1, -0.1])
        velocity = [0.6 * math.cos(0.02 * k), -0.2 * math.sin(0.01 * k)]
        torques.append(compensator.update(time, q, velocity=velocity) or [math.nan] * 2)
    yield "feedback", {}, {"torques": np.array(torques), "desired": compensator.desired}
    yield from _loaded()


def _loaded() -> Iterator[Case]:
    """Torques of the demo arm by its file, with a load and with springs; friction; settings by its URDF."""
    from gravity_experiment import demo_recording, demo_robot  # noqa: PLC0415

    robot, recording = demo_robot(), demo_recording()
    poses = np.random.default_rng(5).uniform(-1.5, 1.5, (30, robot.n_joints)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        path = GravityIdentification(robot).fit(recording).save(Path(folder) / "identified.yaml")
        _, gravity = load_gravity_torque(path, robot.urdf)
        found: dict[str, Any] = {
            "friction": IdentifiedFriction.from_document(load_identified(path), robot.joint_names).compensated([0.5])
        }
    loaded = gravity.carrying(CarriedLoad(2.0, (0.01, 0.02, 0.1), robot.tip))
    found |= {"alone": np.array([gravity(q) for q in poses]), "loaded": np.array([loaded(q) for q in poses])}
    model = GravityModel(robot)
    nominal = LoadedGravity(model, model.project(robot.parameters))
    found |= {"nominal": np.array([nominal(q) for q in poses]), "moments": [gravity.moments, loaded.moments]}
    feedback = FeedbackGains.from_robot(robot, stiffness=[50.0], damping=[5.0])
    settings = JointSettings.from_robot(robot, fault_ramp_time=0.5, effort_limit_factor=0.8, feedback=feedback)
    found["settings"] = picked(settings, "names", "gain", "torque", "rate", "lower", "upper", "velocity", "margin")
    yield "demo arm", {"recording": recording}, found


def simulation() -> Iterator[Case]:
    """States of the demo arm after a scripted second in each mode of its drives."""
    from online_experiment import block  # noqa: PLC0415

    robot = demo_arm()
    rotors = np.array([0.8, 0.8, 0.4, 0.04, 0.04, 0.02])
    sensors = Sensors.draw(robot.limits.effort, np.random.default_rng(2), position_noise=2e-5)
    load = block(1.5)
    for label, springs in (("rigid", None), ("flexible", Springs(2e4, damping=5.0))):
        drives = Drives(rotor_inertia=rotors)
        arm = SimulatedArm(robot, drives=drives, springs=springs, sensors=sensors, start=START, timestep=0.0002)
        found = {}
        rest = np.zeros((1, robot.n_joints))
        points = TrajectoryPoints(robot.joint_names, [0.8], START[np.newaxis] + 0.3, rest, rest)
        steps = {
            "at rest": (arm.hold,),
            "moving": (arm.follow, points),
            "loaded": (arm.attach_load, load),
            "pushed": (arm.push, [20.0, 0, 0, 0, 0, 0]),
            "released": (arm.release,),
            "driven": (arm.command_effort, 0.2 * robot.limits.effort),
        }
        for name, (act, *values) in steps.items():
            act(*values)
            arm.step(0.2)
            found[name] = picked(
                arm, "time", "position", "link_position", "velocity", "torque", "wrench", "effort_mode"
            )
            found[name]["measured"] = list(arm.measure())
        yield label, {"parameters": robot.parameters, "rotors": rotors}, found


def real_arms() -> Iterator[Case]:
    """Base parameters, findings and links of each robot's recording; wrist and speed as the benchmarks have them."""
    from real_recordings import real_recording, real_robot  # noqa: PLC0415

    files = {
        "ur10e": "20_02_10-30sec_12harm",
        "kuka_lwr4": "measurements_1",
        "franka_panda": "exciting_1",
        "staubli_tx40": "record_1",
    }
    for name, file in files.items():
        robot, recording = real_robot(name), real_recording(name, file)
        half = recording.n_samples // 2
        coupled = [("joint_5", "joint_6")] if name == "staubli_tx40" else []
        result = LinkIdentification(robot, coupled=coupled).fit(recording.slice(slice(0, half)))
        found = of_links(result, recording.slice(slice(half, None)))
        findings = [finding.replace(recording.source, name) for finding in of_findings(recording, robot)]
        yield name, {"recording": recording}, {"findings": findings, "links": found}


def real_sensors() -> Iterator[Case]:
    """Torsion of a real arm, markers on a hand."""
    from hand_poses import TIAGO_CSV, TIAGO_URDF, read_poses  # noqa: PLC0415
    from torsion_recordings import KUKA, kuka_recording  # noqa: PLC0415

    run = kuka_recording(KUKA)
    half = run.n_samples // 2
    result = deep("TorsionIdentification")().fit(run.slice(slice(0, half)))
    yield "kuka_kr300", {"recording": run}, of_torsion(result, run.slice(slice(half, None)))
    robot = RobotModel.from_urdf(TIAGO_URDF, tip="arm_7_link")
    motor, positions = read_poses(TIAGO_CSV, robot)
    # Two of the three numbers of each marker: a tracker has fitted a rigid body to them.
    found = register(robot, MarkerSet.on_links(robot, ["arm_7_link"] * 3, dof=2.0), motor, positions)
    yield "tiago", {"motor": motor, "positions": positions}, of_registration(found)


PARTS = (mocap, checks, excitation, information, trajectories, collision, signals, compensation, simulation)
RECORDED = (real_arms, real_sensors)
