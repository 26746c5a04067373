"""``python -m crowdwise``: the same as the command ``crowdwise``."""

import sys

from crowdwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
