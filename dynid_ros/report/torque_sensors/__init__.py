"""The page of calibrated torque sensors."""
