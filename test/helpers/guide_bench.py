"""Provide a bench of the guide that records its calls instead of running nodes."""

from types import SimpleNamespace

from dynid_ros.errors import DynidError


class RecordingBench:
    """Bench whose services answer with their names.

    Args:
        state: state of the excitation at the end of each motion.
        refused: service that refuses; empty: none.
        on_call: called with the name of each service before it answers.
    """

    problem = ""

    def __init__(self, state="done", refused="", on_call=lambda _: None):
        self.calls = []
        self.end_state = state
        self.refused = refused
        self.on_call = on_call
        self.texts = {}
        self.state = None
        self.progress = 0.0
        self.state_time = 0.0
        self.services = SimpleNamespace(set_parameters=self.set_parameters)

    def call(self, service, _value, _timeout):
        self.calls.append(service)
        self.on_call(service)
        if service == self.refused:
            raise DynidError("refused")
        return service

    def set_parameters(self, node, values):
        self.calls.append(f"{node} {' '.join(values)}")

    def start(self, node, _parameters):
        self.calls.append(f"start {node}")
        return node

    def forget(self, topic):
        """Forget nothing."""

    def wait_for(self, _topic, is_over):
        assert is_over(self.end_state)
        return self.end_state

    def has(self, _service):
        return True

    def require_driver(self):
        return "/driver"

    def status_of(self, _node):
        return None

    def stop(self):
        self.calls.append("STOP")
        return "stopped"
