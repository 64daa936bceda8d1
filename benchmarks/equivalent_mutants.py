"""Mutants that change nothing that anybody could see, and why."""

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "control/gravity_compensator.py",
        "-math.inf",
        "(math.inf)",
    ): "times before the first joint state are never compared: it is `_unfit` that refuses until then",
    (
        "model/one_sample.py",
        "not kept[0].variables or (len(kept[0].variables) == 1 and abs(kept[0].factor) == 1.0)",
        "(not kept[0].variables)",
    ): "generated code assigns a variable to another, and computes the same",
}
"""By file below dynid_ros, expression before and after (first lines)."""
