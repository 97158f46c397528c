"""Vectors and matrices: what a scalar is does not matter here."""
