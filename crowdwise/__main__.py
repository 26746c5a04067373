"""``python -m crowdwise``: the same as the command ``crowdwise``."""

import sys

try:
    from crowdwise.cli import main
except KeyboardInterrupt:  # before anything could answer it
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
