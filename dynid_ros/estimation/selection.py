"""Forward selection of a model by its held-out loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.cross_validation import FoldGrams

Model = TypeVar("Model")


class ForwardSelection(Generic[Model]):
    """Model that changes step by step while held-out samples support the change.

    Args:
        grams: normal equations of the folds.
        losses_of: function that returns the held-out losses (F, n) of a model, per fold and joint.
        model: first model.

    Attributes:
        model: model so far.
        losses: (F, n) held-out losses of the model.
    """

    def __init__(self, grams: FoldGrams, losses_of: Callable[[Model], NDArray], model: Model):
        self._grams = grams
        self._losses_of = losses_of
        self.model = model
        self.losses = losses_of(model)

    def try_models(
        self,
        models: Sequence[Model],
        required_gain: Callable[[Model, float], float],
        judged_joints: Callable[[Model], Sequence[Sequence[int]]] | None = None,
    ) -> tuple[list[NDArray], int | None]:
        """Take the best of several models if its gain exceeds the required gain.

        Args:
            models: candidates.
            required_gain: function of a candidate and of the standard error of its gain.
            judged_joints: function that returns groups of joints, each of which must gain; None: all joints together.

        Returns:
            Gains of each group for each candidate, and the index of the candidate that was taken, or None.
        """
        every_joint = [range(self.losses.shape[1])]
        trials = []
        for model in models:
            losses = self._losses_of(model)
            groups = every_joint if judged_joints is None else judged_joints(model)
            gains, errors = np.transpose([self._grams.gain(self.losses[:, j], losses[:, j]) for j in map(list, groups)])
            margin = min(gain - required_gain(model, error) for gain, error in zip(gains, errors, strict=True))
            trials.append((gains, margin, losses))
        best = max(range(len(trials)), key=lambda k: trials[k][1], default=None)
        if best is None or trials[best][1] <= 0.0:
            best = None
        else:
            self.model = models[best]
            self.losses = trials[best][2]
        return [gains for gains, *_ in trials], best
