"""Jobs that identify: from recordings to an `identified.yaml` and a report, and what they take from files and words."""
