"""Export of the identified model to other programs: C source, URDF, MJCF, SDF, actuators of Isaac Lab."""
