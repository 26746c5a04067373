"""The command ``crowdwise``: what went wrong -> one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from crowdwise.exceptions import BusyError, DataError, MissingDataError, MissingExtraError, OutputError

# The first that fits counts; the codes are those of sysexits.h.
EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (MissingExtraError, 69),
    (MissingDataError, 66),
    (BusyError, 75),
    (OutputError, 73),
    (DataError, 65),
    (OSError, 74),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What follows the command; by default what the shell gave.

    Returns
    -------
    code : int
        The exit code: 0 fine, 2 wrong usage, 65 bad data, 66 no such input, 69 an extra is not installed, 73 cannot
        create the output, 74 input/output error, 75 busy, 130 interrupted. Anything else is a bug of ours: 1, with
        a traceback.

    Examples
    --------
    >>> from crowdwise.__main__ import main
    >>> main(["--version"])
    crowdwise, version 0.1.0
    0
    """
    try:
        import click
    except ImportError:
        print("crowdwise: the command line needs click: pip install 'crowdwise[cli]'.", file=sys.stderr)
        return 69
    from crowdwise.cli import crowd

    try:
        result = crowd.main(
            args=None if arguments is None else list(arguments), prog_name="crowdwise", standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("crowdwise: interrupted; what is finished is kept, start again to go on.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 74
    except tuple(kind for kind, _ in EXIT_CODES) as error:
        print(f"crowdwise: {error}", file=sys.stderr)
        return next(code for kind, code in EXIT_CODES if isinstance(error, kind))
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
