"""The acts of the demo, and what they share."""
