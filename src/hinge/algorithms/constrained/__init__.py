"""Closed loops, grasps and contacts: what holds a mechanism, and how it moves when held."""
