"""The page of a gravity identification."""
