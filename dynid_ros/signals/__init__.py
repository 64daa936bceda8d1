"""Signals in time: derivatives, filters, resampling, periods, lags, clocks."""

from dynid_ros.signals.clock_alignment import ClockAlignment, align_clocks
from dynid_ros.signals.cutoff import Cutoff, choose_cutoff
from dynid_ros.signals.derivatives import differentiate
from dynid_ros.signals.five_point import FivePointDifferentiator, five_point_derivative
from dynid_ros.signals.gap_spline import GapSpline
from dynid_ros.signals.harmonics import FourierSeries
from dynid_ros.signals.low_pass import LowPass
from dynid_ros.signals.motion import Motion, central_differences, filtered_motion
from dynid_ros.signals.periods import PeriodAverage, average_periods, base_frequency
from dynid_ros.signals.resampling import Resampled, Segment, resample, stale_rows
from dynid_ros.signals.time_lag import TimeLag, time_lag
from dynid_ros.signals.time_stamps import SampleTimes, sample_times

__all__ = [
    "ClockAlignment",
    "Cutoff",
    "FivePointDifferentiator",
    "FourierSeries",
    "GapSpline",
    "LowPass",
    "Motion",
    "PeriodAverage",
    "Resampled",
    "SampleTimes",
    "Segment",
    "TimeLag",
    "align_clocks",
    "average_periods",
    "base_frequency",
    "central_differences",
    "choose_cutoff",
    "differentiate",
    "filtered_motion",
    "five_point_derivative",
    "resample",
    "sample_times",
    "stale_rows",
    "time_lag",
]
