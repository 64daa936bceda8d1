"""Run the guide and use its page in Debian's chromium with software WebGL."""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from dynid_ros.files.bounded import share_path

TIMEOUT_MS = 420_000  # ms; the browser renders in software, next to all nodes
WEBGL = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
QUICK = "/**/excitation:\n  ros__parameters: {acceleration_limits: [2.0], steps: 3, dwell: 0.4, count: 6}\n"


@contextmanager
def running_guide(output, *options, quick=True):
    """Run `dynid guide` and yield the address of its page; `quick` selects short motions."""
    output.mkdir(parents=True, exist_ok=True)
    urdf = str(share_path("config/demo_arm.urdf"))
    command = [sys.executable, "-m", "dynid_ros", "guide", "--urdf", urdf, "--tip", "tool", "--no-browser"]
    command += ["--port", "0", "--output", str(output), *options]
    if quick:
        (output / "quick.yaml").write_text(QUICK)
        command += ["--params-file", str(output / "quick.yaml")]
    with (output / "guide.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as guide:
        try:
            yield _address(output / "guide.log", guide)
        finally:
            guide.send_signal(signal.SIGINT)
            code = guide.wait(60)
    assert code == 0, (output / "guide.log").read_text()


def _address(log, guide):
    deadline = time.monotonic() + 120
    while "http://" not in log.read_text():
        assert guide.poll() is None, log.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return re.search(r"http://\S+", log.read_text())[0]


@contextmanager
def chromium():
    """Run the browser at a lower priority than the nodes; skip the test without chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as playwright_driver, tempfile.TemporaryDirectory() as folder:
        launcher = Path(folder) / "chromium"
        launcher.write_text(f'#!/bin/sh\nexec nice -n 5 {path} "$@"\n')
        launcher.chmod(0o755)
        browser = playwright_driver.chromium.launch(executable_path=launcher, args=WEBGL)
        yield browser
        browser.close()


class GuidePage:
    """Page of the guide, and the actions of its user."""

    def __init__(self, browser, address):
        self.page = browser.new_page(viewport={"width": 1100, "height": 760})
        self.page.set_default_timeout(TIMEOUT_MS)
        self.page.goto(address)
        self.view = self.page.frame_locator("#view")
        self.view.get_by_text("The same by hand").wait_for()

    def step(self, name):
        self.view.get_by_role("tab", name=name).click()

    def press(self, name):
        self.view.get_by_role("button", name=name, exact=True).click()

    def see(self, text):
        """Wait for a text and return it."""
        element = self.view.get_by_text(re.compile(text)).locator("visible=true").first
        element.wait_for()
        return element.inner_text()

    def stop(self, by_space=False):
        """Press STOP and return the answer of the nodes."""
        if by_space:
            self.page.keyboard.press("Space")
        else:
            self.page.click("#stop")
        self.page.wait_for_function("document.getElementById('answer').textContent.startsWith('STOP: ')")
        answer = self.page.inner_text("#answer")
        self.page.evaluate("document.getElementById('answer').textContent = ''")
        return answer

    def throttle(self):
        """Limit the page to a sixth of the processor and a slow connection."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 6})
        session.send("Network.enable")
        limits = {"offline": False, "latency": 500, "downloadThroughput": 2e5, "uploadThroughput": 2e5}
        session.send("Network.emulateNetworkConditions", limits)

    def close(self):
        self.page.close()
