"""The page of an identification of links."""
