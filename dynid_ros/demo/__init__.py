"""Acts of the demo and their common parts."""
