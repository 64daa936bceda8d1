"""Signals in time: derivatives, filters, resampling, periods, lags, clocks."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.signals.clock_alignment import ClockAlignment, align_clocks
    from dynid_ros.signals.lag import TimeLag, time_lag
    from dynid_ros.signals.low_pass import (
        Cutoff,
        LowPass,
        Motion,
        central_differences,
        choose_cutoff,
        differentiate,
        filtered_motion,
    )
    from dynid_ros.signals.periodic import FourierSeries, base_frequency
    from dynid_ros.signals.resampling import (
        GapSpline,
        Resampled,
        SampleTimes,
        Segment,
        resample,
        sample_times,
        stale_rows,
    )

__all__ = [
    "ClockAlignment",
    "Cutoff",
    "FourierSeries",
    "GapSpline",
    "LowPass",
    "Motion",
    "Resampled",
    "SampleTimes",
    "Segment",
    "TimeLag",
    "align_clocks",
    "base_frequency",
    "central_differences",
    "choose_cutoff",
    "differentiate",
    "filtered_motion",
    "resample",
    "sample_times",
    "stale_rows",
    "time_lag",
]

offer(globals())
