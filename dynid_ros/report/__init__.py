"""HTML reports, built from the content of `identified.yaml`; a malformed section raises `IdentifiedFileError`."""
