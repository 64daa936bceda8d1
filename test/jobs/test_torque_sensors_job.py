"""Test torque sensor calibration by the job and the command, and its use in other identifications."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torque_sensor_bench as bench
import yaml
from command_line import run
from html_page import Page, assert_self_contained, assert_themed
from pictures import unrendered

from dynid_ros.errors import IdentifiedFileError, RecordingError
from dynid_ros.files.bounded import share_path
from dynid_ros.identification import GravityIdentification, TorqueSensorCalibration
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.identified_file import load_identified, save_identified
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.jobs.run import run as run_job
from dynid_ros.nodes.torque_sensor_calibration import read_gravity

GRAVITY = [str(g) for g in bench.GRAVITY]
URDF = ["--urdf", str(share_path("config/demo_arm.urdf")), "--gravity", *GRAVITY]


@cache
def record_experiment():
    """Return the truth, and recordings without and with the mass."""
    rng = np.random.default_rng(0)
    truth = bench.Truth.draw(rng, bench.aslant_robot())
    return truth, *(bench.recording(truth, rng, loaded=loaded) for loaded in (False, True))


@cache
def identify_gravity():
    return GravityIdentification(bench.aslant_robot()).fit(record_experiment()[1]).document()


@pytest.fixture(name="files")
def fixture_files(tmp_path):
    _, plain, loaded = record_experiment()
    plain.write_npz(tmp_path / "plain.npz")
    loaded.write_npz(tmp_path / "loaded.npz")
    return tmp_path


def test_job_writes_file_and_report(tmp_path):
    truth, plain, loaded = record_experiment()
    robot = bench.aslant_robot()
    job = run_job(
        "torque-sensors",
        TorqueSensorCalibration(robot, reference_mass=bench.MASS),
        {"recordings": [plain], "with_mass": [loaded]},
        tmp_path,
    )
    document = load_identified(job.identified)
    entry = document["torque_sensors"]["joint_2"]
    assert abs(entry["gain"] / truth.gain[1] - 1) < 4 * entry["std"]["gain"] < 0.02
    assert document["torque_sensor_calibration"]["reference_mass"]["mass"] == bench.MASS
    assert document["torque_sensor_calibration"]["nullity"] == 0
    sensors = TorqueSensors.of_document(document, robot)
    np.testing.assert_array_equal(sensors.gain, job.result.gain)
    np.testing.assert_array_equal(sensors.offset, job.result.offset)
    page = Page(job.report.read_text(encoding="utf-8"))
    assert_self_contained(page)
    assert_themed(page)
    assert "Gains of 6 of 6 torque sensors were found" in page.text
    assert "a mass of 2.00 kg" in page.text
    assert "joint_2" in job.summary()
    assert str(job.report) in job.summary()
    second = run_job(
        "torque-sensors",
        TorqueSensorCalibration(robot, reference_mass=bench.MASS),
        {"recordings": [plain], "with_mass": [loaded]},
        tmp_path / "again",
    )
    assert second.report.read_bytes() == job.report.read_bytes()


def test_calibration_with_a_mass_gives_gravity_with_covariance():
    truth, plain, loaded = record_experiment()
    robot = bench.aslant_robot()
    result = TorqueSensorCalibration(robot, reference_mass=bench.MASS).fit(plain, loaded)
    document = result.document()
    gravity = KnownGravity.of_document(document, robot)
    exact = KnownGravity.of_urdf(robot)
    error = gravity.moments - exact.moments
    assert error @ np.linalg.solve(gravity.covariance, error) < 33, "chi squared of 12 degrees of freedom: 0.1 %"
    np.testing.assert_array_equal(gravity.covariance, result.gravity.covariance)
    second = TorqueSensorCalibration(robot, gravity=gravity).fit(plain)
    np.testing.assert_allclose(second.gain, truth.gain, rtol=0.02)
    uncorrelated = KnownGravity.of_document({**document, "torque_sensor_calibration": {}}, robot)
    np.testing.assert_allclose(uncorrelated.covariance, np.diag(np.diag(gravity.covariance)))
    assert "gravity" not in second.document()
    document["torque_sensor_calibration"]["moment_covariance"][0][0] *= 2
    with pytest.raises(IdentifiedFileError, match="moment_covariance does not fit"):
        KnownGravity.of_document(document, robot)


def test_report_of_undetermined_gains(tmp_path):
    _, plain, _ = record_experiment()
    job = run_job("torque-sensors", TorqueSensorCalibration(bench.aslant_robot()), {"recordings": [plain]}, tmp_path)
    page = Page(job.report.read_text(encoding="utf-8"))
    assert "Gains of 0 of 6 torque sensors" in page.text
    assert "attach a reference mass" in page.text
    assert "Readings of joint_2" not in page.text
    assert load_identified(job.identified)["torque_sensors"]["joint_2"]["gain"] is None
    sensors = TorqueSensors.of_document(load_identified(job.identified), bench.aslant_robot())
    assert all("gain" in assumed for assumed in sensors.assumed)


@pytest.mark.slow
@unrendered()
def test_command_calibrates_with_and_without_mass_and_corrects(files, capsys):
    code, _, _ = run(
        capsys,
        *("identify", "torque-sensors", *URDF, "--recording", files / "plain.npz", "--reference-mass", bench.MASS),
        *("--recording-with-mass", files / "loaded.npz", "--output", files / "mass"),
    )
    assert code == 0
    model = files / "mass" / "identified.yaml"
    robot = bench.aslant_robot()
    errors = {}
    for name, extra in {"corrected": ["--torque-sensors", model], "raw": []}.items():
        arguments = ["identify", "gravity", *URDF, "--recording", files / "plain.npz", "--output", files / name, *extra]
        # The sanity check cannot detect raw offsets and gains.
        assert run(capsys, *arguments)[0] == 0
        gravity, _ = read_gravity(files / name / "identified.yaml", robot)
        errors[name] = np.abs(gravity.moments - KnownGravity.of_urdf(robot).moments).max()
    assert errors["corrected"] < 0.2 * errors["raw"]
    code, _, _ = run(
        capsys,
        *("identify", "torque-sensors", *URDF, "--recording", files / "plain.npz"),
        *("--model", model, "--output", files / "again", "--json"),
    )
    assert code == 0
    again = load_identified(files / "again" / "identified.yaml")
    assert again["gravity"] == load_identified(model)["gravity"], "the file keeps the gravity of the arm"
    assert "identified.yaml" in again["torque_sensor_calibration"]["source"]["settings"]["gravity"]
    assert read_gravity(files / "again" / "identified.yaml", robot)[0].covariance.any()
    first, second = (
        TorqueSensors.of_document(load_identified(path), robot) for path in (model, files / "again" / "identified.yaml")
    )
    np.testing.assert_allclose(second.gain[:3], first.gain[:3], rtol=0.01)


@pytest.mark.parametrize("by_mass", [True, False])
def test_motor_currents_give_torque_constants(files, capsys, monkeypatch, by_mass):
    """The accuracy is 1 % with a mass of unknown center or with known masses; one motor runs against its joint."""
    monkeypatch.chdir(files)
    rng = np.random.default_rng(21)
    robot = bench.aslant_robot()
    constants = np.array([11.98, 9.84, -10.76, 4.2, 3.1, 2.4])
    drawn = bench.Truth.draw(rng, robot)
    truth = replace(drawn, gain=constants, offset=np.zeros(6), noise=drawn.noise / np.abs(constants))
    bench.recording(truth, rng).write_npz("currents.npz")
    arguments = ["--recording", "currents.npz", "--effort-convention", "motor_current", "--output", "constants"]
    if by_mass:
        bench.recording(truth, rng, loaded=True).write_npz("with_mass.npz")
        arguments += ["--recording-with-mass", "with_mass.npz", "--reference-mass", bench.MASS]
    else:
        arguments += ["--known-masses"]
    code, out, _ = run(capsys, "identify", "torque-sensors", *URDF, *arguments)
    assert code == 0
    document = load_identified("constants/identified.yaml")
    gains = document["torque_sensor_calibration"]["motor_gains"]
    np.testing.assert_allclose(gains, constants, rtol=0.01)
    errors = np.array([document["torque_sensors"][joint]["std"]["gain"] for joint in robot.joint_names])
    assert np.all(np.abs(gains - constants) < 4.0 * errors)
    assert np.all(errors < 0.01 * np.abs(constants))
    line = next(line for line in out.splitlines() if line.startswith("motor_gains: ["))
    np.testing.assert_allclose(yaml.safe_load(line)["motor_gains"], gains, rtol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--reference-mass", "0", "--recording-with-mass", "loaded.npz"], "reference mass is 0 kg"),
        (["--reference-mass", "2"], "no recording was made with it attached"),
        (["--recording-with-mass", "loaded.npz"], "give its weight in kg"),
        (["--reference-mass", "2", "--recording-with-mass", "plain.npz"], "the reference mass of 2 kg is not seen"),
        (
            ["--reference-mass", "2", "--recording-with-mass", "loaded.npz", "--gain-range", "2", "30"],
            "outside gain_range, 2 to 30",
        ),
        (["--model", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["--model", "other.yaml"], "other axes or placements"),
        (["--model", "sensors.yaml"], "no section 'gravity'"),
    ],
)
def test_command_refuses_invalid_inputs_in_one_line(files, capsys, monkeypatch, arguments, words):
    monkeypatch.chdir(files)
    document = identify_gravity()
    save_identified("sensors.yaml", {key: value for key, value in document.items() if key != "gravity"})
    save_identified("other.yaml", document | {"robot": document["robot"] | {"kinematics_sha256": "0"}})
    code, _, err = run(
        capsys, "identify", "torque-sensors", *URDF, "--recording", "plain.npz", "--output", "out", *arguments
    )
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


def test_faulty_recording_is_refused(tmp_path):
    _, plain, _ = record_experiment()
    calibration = TorqueSensorCalibration(bench.aslant_robot())
    with pytest.raises(RecordingError, match="lacks joint"):
        run_job("torque-sensors", calibration, {"recordings": [plain.select(plain.joint_names[:3])]}, tmp_path)
    silent = replace(plain, torque=np.full_like(plain.torque, np.nan))
    with pytest.raises(RecordingError, match="no torque was recorded"):
        run_job("torque-sensors", calibration, {"recordings": [silent]}, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("torque_sensors"), "no section 'torque_sensors'"),
        (lambda d: d["torque_sensors"].pop("joint_3"), "joint 'joint_3' is missing"),
        (lambda d: d["torque_sensors"]["joint_3"].update(gain="much"), "joint_3.*gain is 'much'"),
        (lambda d: d["torque_sensors"]["joint_3"].update(gain=0), "gain is 0"),
        (lambda d: d["robot"].update(kinematics_sha256="0"), "another robot"),
    ],
)
def test_invalid_calibrations_are_refused(tmp_path, change, words):
    truth, _, _ = record_experiment()
    robot = bench.aslant_robot()
    samples, loaded = bench.experiment(truth, np.random.default_rng(1), holds=1)
    document = TorqueSensorCalibration(robot, reference_mass=bench.MASS).fit_samples(samples, loaded).document()
    change(document)
    with pytest.raises(IdentifiedFileError, match=words):
        TorqueSensors.of_document(document, robot)


def test_held_out_recording_is_predicted(tmp_path):
    truth, plain, loaded = record_experiment()
    whole = bench.recording(truth, np.random.default_rng(5), loaded=False)
    held_out = replace(whole.slice(slice(0, 2 * whole.n_samples // 3)), source="held_out")
    calibration = TorqueSensorCalibration(bench.aslant_robot(), reference_mass=bench.MASS)
    recordings = {"recordings": [plain], "with_mass": [loaded], "validate": [held_out]}
    job = run_job("torque-sensors", calibration, recordings, tmp_path)
    (validation,) = job.validations
    assert np.nanmax(validation.relative_rms) < 0.1
    assert load_identified(job.identified)["validation"][0]["recording"] == "held_out"
    assert len(job.screen().text().splitlines()) <= 25
    assert "Validation" in job.report.read_text(encoding="utf-8")
