"""What was found and how good it is, for those who read nothing else."""

import numpy as np

from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.report.conditioning import condition
from dynid_ros.report.demonstration.demonstration import STILL, Demonstration
from dynid_ros.report.formats import brief, counted, distance, listed, percent, significant, with_unit
from dynid_ros.report.gravity.quality import GOOD, Quality
from dynid_ros.report.page import Tile
from dynid_ros.report.units import joint_units


def sentences(
    model: IdentifiedGravity, samples: Samples, quality: Quality, demonstration: Demonstration | None
) -> list[str]:
    """What was identified, how well it predicts, and what became of the arm that was let go."""
    found = [_judged(model, quality), _identified(model, samples)]
    if np.isfinite(quality.error):
        found.append(
            f"On {quality.evidence}, the predicted torque is off by at most {percent(quality.error)} of "
            f"{quality.reference} (RMS)"
            + ("." if quality.unseen else "; another recording would show how well it predicts.")
        )
    if quality.apart:
        units = dict(zip(model.robot.joint_names, joint_units(model.robot), strict=True))
        each = [
            f"{name} ({with_unit(rms, units[name].effort, 2) if np.isfinite(rms) else 'not predicted'})"
            for name, rms in quality.apart.items()
        ]
        found.append(f"Gravity hardly loads {listed(each)}; in brackets what their friction leaves unexplained (RMS).")
    if demonstration is not None:
        found.append(_drop(model, demonstration))
    return found


def tiles(model: IdentifiedGravity, quality: Quality, demonstration: Demonstration | None) -> list[Tile]:
    """The same in numbers."""
    loaded, known = _joints(model)
    free = f"gravity never loads {listed(model.torque_free)}" if model.torque_free else "gravity loads them all"
    found = [Tile("Joints identified", f"{len(known)} of {len(loaded)}", free)]
    if np.isfinite(quality.error):
        note = f"of {quality.reference}, on {quality.evidence}"
        found.append(Tile("Prediction error, worst joint", percent(quality.error), note))
    if demonstration is not None:
        unit = joint_units(model.robot)[_most_moved(demonstration)]
        found.append(
            Tile(
                f"Drift in {brief(demonstration.duration)} s",
                distance(demonstration.drift_with.max(), unit),
                f"with compensation; {distance(demonstration.drift_without.max(), unit)} without",
            )
        )
    found.append(Tile("Condition number", significant(model.condition_number), condition(model.condition_number).word))
    return found


def _judged(model: IdentifiedGravity, quality: Quality) -> str:
    """The one verdict, from all that speaks against it."""
    loaded, known = _joints(model)
    against = []
    if known != loaded:
        against.append(f"gravity of {listed([name for name in loaded if name not in known])} is not known")
    if quality.error > GOOD:
        against.append(f"the torque is off by more than {percent(GOOD)} of {quality.reference}")
    if against:
        return f"Not good enough to compensate gravity: {' and '.join(against)}."
    if not loaded:
        return "Nothing to compensate."
    if not quality.unseen:
        return "Good on the data that it was fitted to; try it on another recording before it compensates gravity."
    return "Good enough to compensate gravity."


def _joints(model: IdentifiedGravity) -> tuple[list[str], list[str]]:
    """Names of the joints that gravity loads, and of those that were identified."""
    loaded = [name for name in model.robot.joint_names if name not in model.torque_free]
    return loaded, [name for name in loaded if name not in model.reasons]


def _identified(model: IdentifiedGravity, samples: Samples) -> str:
    loaded, known = _joints(model)
    poses = _poses(samples)
    if not loaded:
        return "Gravity loads none of the joints: there is nothing to identify."
    if not known:
        return f"No joint's gravity parameters could be identified from {poses}."
    if known == loaded:
        joints = f"all {len(loaded)} joints that gravity loads" if len(loaded) > 1 else f"joint {loaded[0]}"
        return f"The gravity parameters of {joints} were identified from {poses}."
    return (
        f"The gravity parameters of {len(known)} of the {len(loaded)} joints that gravity loads were identified from "
        f"{poses}; those of {listed(list(model.reasons))} could not be."
    )


def _poses(samples: Samples) -> str:
    static = int(np.count_nonzero(samples.static))
    slow = len(samples) - static
    parts = {f"{counted(static, 'pose')} at rest": static, f"{counted(slow, 'stretch')} of slow motion": slow}
    return listed([text for text, count in parts.items() if count])


def _most_moved(demonstration: Demonstration) -> int:
    return int(np.argmax(demonstration.drift_without))


def _drop(model: IdentifiedGravity, demonstration: Demonstration) -> str:
    unit = joint_units(model.robot)[_most_moved(demonstration)]
    seconds = f"{brief(demonstration.duration)} s"
    drift_with = distance(demonstration.drift_with.max(), unit)
    if demonstration.drift_without.max() < STILL:
        return (
            f"Let go, friction alone holds the arm; with gravity compensation it drifts by {drift_with} in {seconds}."
        )
    drift_without = distance(demonstration.drift_without.max(), unit)
    return (
        f"Let go, the arm's joints drift by up to {drift_without} in {seconds} without gravity compensation, and by "
        f"{drift_with} with it."
    )
