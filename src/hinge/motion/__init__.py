"""Robots in motion: simulation, and what it depends on."""
