"""The pages of flexible joints, and of torsion."""
