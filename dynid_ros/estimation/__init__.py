"""Statistics of linear models."""
