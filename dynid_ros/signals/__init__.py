"""Signals in time: derivatives, filters, resampling, periods, lags."""

from dynid_ros.signals.cutoff import Cutoff, choose_cutoff
from dynid_ros.signals.derivatives import differentiate
from dynid_ros.signals.five_point import FivePointDifferentiator, five_point_derivative
from dynid_ros.signals.harmonics import FourierSeries
from dynid_ros.signals.low_pass import LowPass
from dynid_ros.signals.motion import Motion, central_differences, filtered_motion
from dynid_ros.signals.periods import PeriodAverage, average_periods, base_frequency
from dynid_ros.signals.resampling import Resampled, Segment, resample, stale_rows
from dynid_ros.signals.time_lag import TimeLag, time_lag
from dynid_ros.signals.time_stamps import SampleTimes, sample_times

__all__ = [
    "Cutoff",
    "FivePointDifferentiator",
    "FourierSeries",
    "LowPass",
    "Motion",
    "PeriodAverage",
    "Resampled",
    "SampleTimes",
    "Segment",
    "TimeLag",
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
