"""What is recorded already, for a motion that adds to it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.information.torque_information import InformationSource
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals


def recorded_information(source: InformationSource, recordings: Sequence[Recording]) -> NDArray:
    """Information (p, p) of the recordings: of the motion as the identification of links sees it, integrated over time.

    Args:
        source: what is asked for.
        recordings: of the arm, with torques.

    Raises:
        IdentificationError: a recording holds no motion or no torque.
        RecordingError: too few samples.

    """
    signals = LinkSignals.choose(recordings)
    segments = [segment for recording in recordings for segment in signals.segments(recording)]
    return np.sum([source.over_time(segment.time, *segment.motion) for segment in segments], axis=0)
