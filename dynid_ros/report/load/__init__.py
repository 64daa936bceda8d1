"""The page of an identified load."""
