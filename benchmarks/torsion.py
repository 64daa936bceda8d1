"""Torsion of a real arm's joints with encoders on motor and link, predicted on held-out motion.

python -m benchmarks.torsion [train.npz test.npz ...]

Without files, the recording is that of a KUKA KR300 in DYNID_DATA, fitted in parts that predict the others. The table
has the RMS of the recorded torsion in mdeg, without means, and the mean. The prediction uses only the position of the
link encoder, which determines its ripple: the first residual is without ripples, the second with them.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))  # recordings are shared with the tests

from torsion_recordings import KUKA, kuka_parts, kuka_recording

from dynid_ros.identification.flexible.torsion_choice import MDEG
from dynid_ros.identification.flexible.torsion_identification import TorsionIdentification
from dynid_ros.recording import Recording


def main() -> None:
    """Print a table for each fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="recordings; the first is fitted, the others are predicted")
    files = parser.parse_args().files
    if not files and not KUKA.exists():
        sys.exit(f"no recording {KUKA}: set DYNID_DATA, or name files")
    train = kuka_recording(files[0] if files else KUKA)
    judge("all of it", train, [kuka_recording(path) for path in files[1:]] or [train])
    if len(files) < 2:
        for name, training, unseen in kuka_parts(train):
            judge(name, train.slice(training), [train.slice(unseen)])


def judge(name: str, train: Recording, unseen: Sequence[Recording]) -> None:
    """Fit one recording, and print the residuals of the others."""
    result = TorsionIdentification().fit(train)
    print(f"\nfitted: {train.source}, {name} ({train.time[0]:.1f} to {train.time[-1]:.1f} s)")
    for recording in unseen:
        validation = result.validate(recording)
        span = f"{recording.time[0]:.1f} to {recording.time[-1]:.1f} s"
        print(f"  {'seen' if recording is train else 'unseen'}: {recording.source}, {span}")
        for i, joint in enumerate(result.joint_names):
            if np.isfinite(validation.torsion_rms[i]):
                kinds = (
                    validation.torsion_rms,
                    validation.plain_residual_rms,
                    validation.centred_residual_rms,
                    validation.offset,
                )
                torsion, plain, residual, mean = (values[i] * MDEG for values in kinds)
                print(
                    f"    {joint}: torsion {torsion:5.1f}  residual {plain:5.2f}  {residual:5.2f}  its mean {mean:5.2f}"
                )
    for joint, model in result.joints.items():
        print(f"  stiffness of {joint}: {model.stiffness}")
    if name == "all of it":
        print(result.summary())


if __name__ == "__main__":
    main()
