"""Parts of the node `gravity_compensation`."""
