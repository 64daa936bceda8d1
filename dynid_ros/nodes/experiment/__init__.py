"""Parts of the node `excitation`."""
