"""Test that a result, its report and the page of its file give the same confidence intervals."""

import re
from dataclasses import replace

import link_experiment
import numpy as np
import pytest
from gravity_experiment import demo_robot, planned_recording
from html_page import Page
from scipy.stats import t

from dynid_ros.commands.report import report_file
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.run import run
from dynid_ros.report.formats import as_fine_as

ROBOT, TRUTH = link_experiment.build_planar()


def read_intervals(page: str) -> set[str]:
    """Return all `value ± half-width` texts of a page."""
    text = Page(page).text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")
    return {" ± ".join(pair) for pair in re.findall(r"([−-]?[\d.e+−-]+) ± ([\d.e+−-]+)", text)}


def format_intervals(values: np.ndarray, errors: np.ndarray, dof: np.ndarray) -> set[str]:
    """Return `value ± half-width` texts of 95 % Student t intervals."""
    halves = t.ppf(0.975, dof) * errors
    return {
        f"{as_fine_as(value, half)} ± {as_fine_as(half, half)}"
        for value, half in zip(values, halves, strict=True)
        if np.isfinite(half)
    }


@pytest.mark.slow
def test_gravity_pages_show_the_t_intervals_of_the_result(tmp_path, monkeypatch):
    fit = GravityIdentification.fit

    def fit_with_5_dof(self, *recordings):
        estimate = fit(self, *recordings)
        return replace(estimate, dof=np.full_like(estimate.dof, 5.0))

    monkeypatch.setattr(GravityIdentification, "fit", fit_with_5_dof)
    job = run("gravity", GravityIdentification(demo_robot()), {"recordings": [planned_recording()]}, tmp_path)
    result = job.result
    moments = format_intervals(result.parameters, result.standard_errors, np.full(len(result.parameters), 5.0))
    assert len(moments) > 8
    page = report_file(job.identified, tmp_path / "page.html").read_text()
    assert moments <= read_intervals(job.report.read_text())
    assert moments <= read_intervals(page)


def test_link_pages_show_the_t_intervals_of_the_result(tmp_path):
    recording = link_experiment.record(ROBOT, TRUTH, ripple=0.3)
    identification = LinkIdentification(ROBOT, friction=link_experiment.FRICTION, prior_weight=1.0)
    job = run("links", identification, {"recordings": [recording]}, tmp_path)
    estimate = job.result.base_parameters
    # Pages show the dry friction of each direction instead of the Coulomb torque and the offset.
    is_listed = np.array([not name.startswith(("coulomb", "offset")) for name in estimate.expressions])
    base = format_intervals(estimate.values[is_listed], estimate.standard_errors[is_listed], estimate.dof[is_listed])
    assert estimate.dof.min() < 30
    assert np.ptp(estimate.dof) > 1
    page = report_file(job.identified, tmp_path / "page.html").read_text()
    assert base <= read_intervals(page)
    assert base <= read_intervals(job.report.read_text())
    document = load_identified(job.identified)
    for entry, dof in zip(document["base_parameters"], estimate.dof, strict=True):
        assert entry["degrees_of_freedom"] == pytest.approx(dof)
