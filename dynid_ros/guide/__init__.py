"""Guided page in a browser: from a URDF to an arm that floats, by the nodes and commands of this package."""
