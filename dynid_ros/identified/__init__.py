"""The file `identified.yaml`: each section written and read in one module."""
