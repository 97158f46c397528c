"""`python -m hinge` is the command `hinge`."""

import sys

from .cli import main

sys.exit(main())
