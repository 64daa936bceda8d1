"""What the arm carries, from joint torques or a wrist sensor (Atkeson, An & Hollerbach 1986)."""
