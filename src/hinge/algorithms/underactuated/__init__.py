"""Driven and passive joints.  Paper U."""
