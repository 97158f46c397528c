"""The site: `pip install ".[docs]" && sphinx-build -W docs site`."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# the extensions, and the rules that tests have for pages
sys.path[:0] = [str(ROOT / "docs" / "_ext"), str(ROOT / "tests")]

import hinge  # noqa: E402
from public import CHAPTERS  # noqa: E402

project, author, copyright = "hinge", "the authors of hinge", "the authors of hinge"
version = release = hinge.__version__
extensions = ["myst_parser", "executed", "repository", "reference", "keywords"]
exclude_patterns = ["_ext"]
nitpicky = True

repository = "https://github.com/hinge-dynamics/hinge"
# every page, in order; a star stands for the rest of a folder
navigation = {
    "Begin": ["start", "gallery", "viewing"],
    "Tasks": [
        "tasks/index", "tasks/load", "inverse_kinematics", "control", "simulation", "ground",
        "contact", "linearized", "tasks/mpc", "identification", "gpu", "jax", "torch", "casadi",
        "embedded", "cluster",
    ],
    "Coming from": ["coming_from/*"],
    "Guide": [
        "mechanisms", "loading", "mjcf", "editing", "spatial", "underactuated", "derivatives",
        "compiling",
        "long_mechanisms", "large_batches",
        "operators", "diagonalized", "frameworks", "command_line", "notation", "algorithms",
    ],
    "Theory": [
        "theory/index", "theory/spatial_vectors", "theory/linearized", "theory/underactuated",
        "theory/diagonalized", "theory/*", "tutorials/*", "literature",
    ],
    "Reference": ["reference/index", *(f"reference/{page}" for page in CHAPTERS)],
    "Evidence": ["benchmarks", "first_calls", "accuracy", "corpus", "campaign", "platforms"],
    "For contributors": ["architecture", "extend"],
}  # fmt: skip

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

toc_object_entries_show_parents = "hide"
html_theme = "furo"
html_title = "hinge"
html_static_path = ["_static"]
html_css_files = ["hinge.css", "formulas.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
pygments_style, pygments_dark_style = "default", "github-dark"
html_theme_options = {
    "light_logo": "logo.svg",
    "dark_logo": "logo_dark.svg",
    "sidebar_hide_name": True,
    "source_repository": repository,
    "source_branch": "main",
    "source_directory": "docs/",
}
