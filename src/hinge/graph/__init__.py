"""Tracing: from a function of numbers to a graph of operations.  Knows nothing of robots."""
