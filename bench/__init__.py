"""How fast hinge is, and against whom: `python -m bench` measures, prints and writes the page."""
