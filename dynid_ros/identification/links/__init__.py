"""Inertia and friction of links, by least squares on motion (Atkeson, An & Hollerbach 1986; Khosla & Kanade 1987)."""
