"""Diagonalised dynamics.  Paper D."""
