"""Identification sample by sample (Khosla & Kanade 1987)."""
