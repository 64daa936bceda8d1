"""Signals in time: derivatives, filters, resampling, periods, lags, clocks."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.signals.clock_alignment import ClockAlignment as ClockAlignment, align_clocks as align_clocks
    from dynid_ros.signals.lag import TimeLag as TimeLag, time_lag as time_lag
    from dynid_ros.signals.low_pass import (
        Cutoff as Cutoff,
        LowPass as LowPass,
        Motion as Motion,
        central_differences as central_differences,
        choose_cutoff as choose_cutoff,
        differentiate as differentiate,
        filtered_motion as filtered_motion,
    )
    from dynid_ros.signals.periodic import FourierSeries as FourierSeries, base_frequency as base_frequency
    from dynid_ros.signals.resampling import (
        GapSpline as GapSpline,
        Resampled as Resampled,
        SampleTimes as SampleTimes,
        Segment as Segment,
        resample as resample,
        sample_times as sample_times,
        stale_rows as stale_rows,
    )


offer(globals())
