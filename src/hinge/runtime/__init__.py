"""From arrays to arrays: checked arguments, any leading batch shape."""
