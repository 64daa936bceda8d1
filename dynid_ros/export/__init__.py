"""What was identified, in the form that other programs take: C source, URDF, MJCF, SDF, actuators of Isaac Lab."""
