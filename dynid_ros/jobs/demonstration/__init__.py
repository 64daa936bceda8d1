"""Acts of the demo, judged: what was identified beside the truth."""
