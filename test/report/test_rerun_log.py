"""Test Rerun logs by reading them with the `rerun` program."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import link_experiment
import numpy as np
import planar_arm
import pytest

from dynid_ros import cli
from dynid_ros.errors import RecordingError
from dynid_ros.identification import LinkIdentification
from dynid_ros.recording.series import CommandSeries
from dynid_ros.report.rerun_log import POSE_RATE_HZ, log_to_rerun

ROBOT, TRUTH = link_experiment.build_planar()
RECORDING = link_experiment.record(ROBOT, TRUTH)


def count_rows(file: Path) -> dict[str, int]:
    """Return the number of data rows of each entity."""
    pytest.importorskip("rerun")
    program = Path(sys.executable).with_name("rerun")
    subprocess.run([program, "rrd", "verify", file], check=True, capture_output=True)
    printed = subprocess.run([program, "rrd", "print", file], check=True, capture_output=True, text=True).stdout
    tables = re.findall(r"with (\d+) rows .* - /(\S+) - (?:data )?columns: \[(?:Scalars?|LineStrips?3D)\b", printed)
    return {entity: int(count) for count, entity, *_ in tables}


def test_log_has_each_sample_and_the_arm_at_display_rate(tmp_path):
    pytest.importorskip("rerun")
    velocity = RECORDING.velocity.copy()
    velocity[:, 1] = np.nan
    velocity[10, 0] = np.nan
    command = CommandSeries(RECORDING.time[::2], RECORDING.position[::2])
    rows = count_rows(
        log_to_rerun(ROBOT, replace(RECORDING, velocity=velocity, command=command), None, tmp_path / "a.rrd")
    )
    n_samples, first, second = RECORDING.n_samples, *ROBOT.joint_names[:2]
    assert rows[f"position/{first}"] == rows[f"torque/{first}/measured"] == n_samples
    assert rows[f"command/{second}"] == len(command.time)
    assert rows[f"velocity/{first}"] == n_samples - 1
    assert f"velocity/{second}" not in rows
    assert not any("predicted" in entity for entity in rows)
    assert rows["arm"] == pytest.approx(POSE_RATE_HZ * np.ptp(RECORDING.time), abs=2)


def test_view_writes_measured_and_predicted_torque(tmp_path, capsys):
    pytest.importorskip("rerun")
    urdf = tmp_path / "arm.urdf"
    file = tmp_path / "run.rrd"
    urdf.write_text(planar_arm.urdf())
    RECORDING.write_npz(tmp_path / "run.npz")
    model = LinkIdentification(ROBOT, friction=link_experiment.FRICTION, prior_weight=1.0).fit(RECORDING)
    options = ["--urdf", urdf, "--recording", tmp_path / "run.npz", "--output", file]
    options += ["--model", model.save(tmp_path / "identified.yaml")]
    with pytest.raises(SystemExit) as ended:
        cli.main(["view", *map(str, options)])
    assert ended.value.code == 0
    assert f"rerun {file}" in capsys.readouterr().out
    rows = count_rows(file)
    for joint in ROBOT.joint_names:
        assert rows[f"torque/{joint}/predicted"] == rows[f"torque/{joint}/residual"] == RECORDING.n_samples


def test_missing_rerun_names_the_package_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(RecordingError, match=r"needs Rerun .*pip install 'rerun-sdk"):
        log_to_rerun(ROBOT, RECORDING, None, tmp_path / "run.rrd")
    assert not list(tmp_path.iterdir())
