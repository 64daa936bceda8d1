"""Steps of the guide, one file each."""
