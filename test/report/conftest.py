"""The arm of the reports on gravity."""

from gravity_report_arm import (  # noqa: F401 - fixtures
    fixture_arm,
    fixture_document,
    fixture_result,
    fixture_robot,
    fixture_samples,
)
