"""Position-commanded servos without torque: delay, gain, inertia, friction and gravity from commands and positions."""
