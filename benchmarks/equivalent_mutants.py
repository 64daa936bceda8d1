"""Mutants that change nothing that anybody could see, and why."""

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "control/gravity_compensator.py",
        "-math.inf",
        "(math.inf)",
    ): "times before the first joint state are never compared: it is `_unfit` that refuses until then",
    (
        "design/augmented_lagrangian.py",
        "20",
        "21",
    ): "how many steps L-BFGS remembers decides how quickly it gets there alone",
    (
        "excitation/joint_by_joint.py",
        "travel = [self.travel.connect(motion[-1].position[-1], part.position[0])] if motion else []",
        "travel = [self.travel.connect(motion[-1].position[-0], part.position[0])] if motion else []",
    ): "sines and steps end in the pose that they start from",
    (
        "excitation/pose_choice.py",
        "starts = [greedy, *(list(rng.choice(poses, count, replace=False)) for _ in range(STARTS))]",
        "starts = [greedy, *(list(rng.choice(poses, count, replace=True)) for _ in range(STARTS))]",
    ): "a pose that is drawn twice is the first thing to be exchanged for another",
    (
        "identification/flexible/rigid_sums.py",
        "1.0",
        "3.0",
    ): "only zeros are divided by it: rows of information of what was not told, and weights that are none",
    (
        "model/one_sample.py",
        "not kept[0].variables or (len(kept[0].variables) == 1 and abs(kept[0].factor) == 1.0)",
        "(not kept[0].variables)",
    ): "generated code assigns a variable to another, and computes the same",
}
"""By file below dynid_ros, expression (or, where that is found elsewhere too, line) before and after (first lines)."""
