"""Parts of the nodes that identify and calibrate."""
