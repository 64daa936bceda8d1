"""Step 2: what effort means; the arm is moved by hand or by the excitation, and `dynid check` looks at it meanwhile."""

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor

from dynid_ros.checks.finding import COMPENSATED, CURRENT
from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import Action, call, move, run, set_parameters
from dynid_ros.guide.context import Context
from dynid_ros.guide.panel import plain_markdown

CHECK_PERIOD_S = 8.0
N_JOG_POSES = 5
USUAL_POSES = 15
JOG_SPEED = 0.2
PROPOSED_CONVENTIONS = {CURRENT: "motor_current", COMPENSATED: "gravity_compensated"}
"""Convention that a kind of finding proposes."""


class EffortStep:
    """Widgets of the step, and the check that runs again and again while the recorder records.

    Args:
        context: what the steps share.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._checks = ThreadPoolExecutor(max_workers=1)
        self._running: Future[str] | None = None
        self._due = 0.0
        self._records = False
        panel = context.panel
        panel.said(
            "Effort in `joint_states` may be torque, current, or torque without gravity. Record, jog the arm to five "
            "different poses with the teach pendant, and let it rest for some seconds in each."
        )
        context.add_effort_inputs()
        said = panel.said()
        panel.button(
            "Record by hand",
            self._begin,
            said,
            hint="ros2 service call /recorder/start; jog the arm now",
            then=self._on_begin,
        )
        panel.button("End and check", self._end, said, hint="Stop the recorder and run dynid check", then=self._judge)
        panel.button(
            "Jog for me",
            self._jog,
            said,
            hint="The excitation node moves the arm slowly to some poses, recorded; then dynid check",
            then=self._judge,
        )
        self._said = said
        self._findings = panel.said()

    def refresh(self) -> None:
        """Show the last check, and start the next one while recording."""
        if self._running is not None and self._running.done():
            error = self._running.exception()
            if error is None:
                self._show(self._running.result())
            self._running = None
            self._due = time.monotonic() + CHECK_PERIOD_S
        if self._records and self._running is None and time.monotonic() > self._due:
            self._running = self._checks.submit(self._check().do, self._context.bench)

    def _begin(self) -> list[Action]:
        self._context.bench.require_driver()
        return [self._context.start("recorder"), call("recorder/start")]

    def _on_begin(self, text: str) -> None:
        self._records = True
        self._due = time.monotonic() + CHECK_PERIOD_S
        self._said.show(f"{plain_markdown(text)}. **Jog the arm now**; the check below follows.")

    def _end(self) -> list[Action]:
        self._records = False
        return [call("recorder/stop"), self._check_later()]

    def _jog(self) -> list[Action]:
        bench = self._context.bench
        usual = bench.parameters_of("excitation", ["count"]).count if bench.has("excitation/design") else USUAL_POSES
        jog = self._context.design("gravity", "poses", JOG_SPEED, count=N_JOG_POSES)
        back = set_parameters("excitation", {"count": usual})
        return [*jog, move(recorded=True), back, self._check_later()]

    def _check_later(self) -> Action:
        """Return the check of the bag that is the last one when the check begins."""
        return Action(self._check().lines, lambda bench: self._check().do(bench))

    def _check(self) -> Action:
        answers = self._context.answers
        bag = self._context.bench.texts["recorder/bag"] or "BAG"
        options = [*answers.robot_options(), "--recording", bag, *answers.effort_options()]
        return run("dynid", "check", *options, "--json")

    def _judge(self, text: str) -> None:
        self._said.show("")
        self._show(text)

    def _show(self, text: str) -> None:
        """Show the findings, and set the convention that they propose."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise DynidError("dynid check gave no answer; run it in a terminal") from error
        findings = document.get("findings", [])
        lines = [
            f"- **{finding['severity']}**: {plain_markdown(finding['message'])}; {plain_markdown(finding['fix'])}"
            for finding in findings
        ]
        samples = document.get("samples", 0)
        verdict = f"**{'No fault found' if not findings else f'{len(findings)} findings'}** in {samples} samples."
        proposed = next(
            (PROPOSED_CONVENTIONS[finding["kind"]] for finding in findings if finding["kind"] in PROPOSED_CONVENTIONS),
            "",
        )
        if proposed:
            verdict += f" Proposed: effort is `{proposed}`; choose it above, and check again."
        elif not findings:
            verdict += f" Effort is `{self._context.answers.effort_convention}`, and signs and order are right."
        self._findings.show("\n".join([verdict, "", *lines]))
