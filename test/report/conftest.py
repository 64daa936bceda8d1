"""Share the arm, samples and results of `gravity_report_arm` with the tests of the gravity report."""

from gravity_report_arm import (  # noqa: F401 - fixtures
    fixture_arm,
    fixture_document,
    fixture_result,
    fixture_robot,
    fixture_samples,
)
