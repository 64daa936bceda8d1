"""The same number has the same interval in the result, in its report and on the page of the file."""

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

ROBOT, TRUTH = link_experiment.planar()


def said(page: str) -> set[str]:
    """Numbers with an interval."""
    text = Page(page).text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")
    return {" ± ".join(pair) for pair in re.findall(r"([−-]?[\d.e+−-]+) ± ([\d.e+−-]+)", text)}


def expected(values: np.ndarray, errors: np.ndarray, dof: np.ndarray) -> set[str]:
    halves = t.ppf(0.975, dof) * errors
    return {
        f"{as_fine_as(value, half)} ± {as_fine_as(half, half)}"
        for value, half in zip(values, halves, strict=True)
        if np.isfinite(half)
    }


@pytest.mark.slow
def test_gravity(tmp_path, monkeypatch):
    fit = GravityIdentification.fit

    def fewer(self, *recordings):
        found = fit(self, *recordings)
        return replace(found, dof=np.full_like(found.dof, 5.0))

    monkeypatch.setattr(GravityIdentification, "fit", fewer)
    job = run("gravity", GravityIdentification(demo_robot()), {"recordings": [planned_recording()]}, tmp_path)
    result = job.result
    moments = expected(result.parameters, result.standard_errors, np.full(len(result.parameters), 5.0))
    assert len(moments) > 8
    page = report_file(job.identified, tmp_path / "page.html").read_text()
    assert moments <= said(job.report.read_text())
    assert moments <= said(page)


@pytest.mark.parametrize("ripple", [0.3])
def test_links(ripple, tmp_path):
    recording = link_experiment.record(ROBOT, TRUTH, ripple=ripple)
    identification = LinkIdentification(ROBOT, friction=link_experiment.FRICTION, prior_weight=1.0)
    job = run("links", identification, {"recordings": [recording]}, tmp_path)
    estimate = job.result.base_parameters
    # pages show Coulomb friction and offset as the torque in each direction
    shown = np.array([not name.startswith(("coulomb", "offset")) for name in estimate.expressions])
    base = expected(estimate.values[shown], estimate.standard_errors[shown], estimate.dof[shown])
    assert estimate.dof.min() < 30
    assert np.ptp(estimate.dof) > 1
    page = report_file(job.identified, tmp_path / "page.html").read_text()
    assert base <= said(page)
    assert base <= said(job.report.read_text())
    document = load_identified(job.identified)
    for entry, dof in zip(document["base_parameters"], estimate.dof, strict=True):
        assert entry["degrees_of_freedom"] == pytest.approx(dof)
