"""`python -m tests.campaign`, from the root of the repository."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from campaign.command import main

    sys.exit(main())
