"""Linearised dynamics.  Paper L."""
