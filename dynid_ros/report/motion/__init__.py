"""The page of a motion to record."""
