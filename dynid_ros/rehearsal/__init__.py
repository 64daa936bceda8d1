"""Rehearsal of an experiment on a simulated arm whose truth only the verdict sees."""
