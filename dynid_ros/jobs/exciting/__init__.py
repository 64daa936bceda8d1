"""Jobs that plan a motion: from an arm and its limits to the files of a trajectory."""
