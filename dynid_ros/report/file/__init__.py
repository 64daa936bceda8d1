"""The page of an `identified.yaml` by itself."""
