"""From measured motion to a better model: what can be identified, and its identification."""
