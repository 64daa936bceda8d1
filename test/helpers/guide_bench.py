"""Bench of the guide that notes what is called, in place of nodes."""

from dynid_ros.errors import DynidError


class RecordingBench:
    """Bench whose services answer with their names.

    Args:
        state: state of the excitation at the end of each motion.
        refused: service that refuses; empty: none.
        on_call: called with the name of each service before it answers.
    """

    def __init__(self, state="done", refused="", on_call=lambda _: None):
        self.calls = []
        self.state = state
        self.refused = refused
        self.on_call = on_call

    def call(self, service, _value, _timeout):
        self.calls.append(service)
        self.on_call(service)
        if service == self.refused:
            raise DynidError("refused")
        return service

    def forget(self, topic):
        """Forget nothing."""

    def wait_for(self, _topic, is_over):
        assert is_over(self.state)
        return self.state

    def stop(self):
        self.calls.append("STOP")
        return "stopped"
