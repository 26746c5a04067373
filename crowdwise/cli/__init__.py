"""The command ``crowdwise``: arguments -> a command -> an exit code, and one sentence if something went wrong.

Each command is one module here with a click command called ``command``, and one line in `crowdwise.cli.group.COMMANDS`.
Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TextIO

from crowdwise._text import how_to_install, printable

_INTERRUPTED = "interrupted; finished work is kept. Run the command again to continue."


class ExitCode(IntEnum):
    """What the exit codes mean; those from 65 to 75 are those of sysexits.h."""

    FINE = 0
    OUR_BUG = 1  # with a traceback
    WRONG_USAGE = 2
    BAD_DATA = 65
    NO_INPUT = 66
    NO_EXTRA = 69
    NO_OUTPUT = 73
    INPUT_OUTPUT = 74
    TRY_AGAIN = 75  # busy, changed while we worked, or out of memory
    INTERRUPTED = 130
    PIPE_CLOSED = 141  # the reader of our output left: what a shell reports for SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What follows the command; by default what the shell gave.

    Returns
    -------
    code : int
        An `ExitCode`. A bug of ours is raised, so that Python prints its traceback and exits with 1.

    Examples
    --------
    >>> from crowdwise.__main__ import main
    >>> main(["--version"])
    crowdwise, version 0.1.0
    0
    """
    with _streams(), _starting():
        return int(_run(arguments))


def started() -> None:
    """The imports of a command are done: from here on Ctrl-C is a KeyboardInterrupt, which can be answered."""
    gc.enable()
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Until `started`, Ctrl-C ends the process at once: imports may swallow an interrupt or make an error of it.

    Imports make no garbage: to look for some in all that they load takes an eighth of their time.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: object) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"crowdwise: {_INTERRUPTED}\n".encode())
    os._exit(ExitCode.INTERRUPTED)


def _run(arguments: Sequence[str] | None) -> ExitCode:
    try:
        import click
    except ImportError:
        return _failed(f"the command line needs click: {how_to_install('cli')}.", ExitCode.NO_EXTRA)
    from crowdwise.cli.group import crowd

    typed = list(sys.argv[1:] if arguments is None else arguments)
    streams = sys.stdout, sys.stderr
    try:
        result = crowd.main(args=typed, prog_name="crowdwise", standalone_mode=False, obj=tuple(typed))
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        return _failed(message.getvalue().rstrip("\n"), ExitCode(error.exit_code), said_by="")
    except click.Abort:  # click's word for Ctrl-C
        return _failed(_INTERRUPTED, ExitCode.INTERRUPTED)
    except SystemExit:
        if sys.stdout is streams[0]:
            raise
        sys.stdout, sys.stderr = streams  # click hides them when the pipe is closed
        return ExitCode.PIPE_CLOSED
    except Exception as error:  # what a person can mend ends in a sentence; a bug of ours is raised again
        code = _code_of(error)
        if code is ExitCode.OUR_BUG:
            raise
        return _failed(str(error) or type(error).__name__, code)
    return ExitCode(result) if isinstance(result, int) else ExitCode.FINE


def _code_of(error: Exception) -> ExitCode:
    from crowdwise import exceptions as ours  # slow to import, so not before there is an error

    codes: tuple[tuple[type[Exception], ExitCode], ...] = (  # the first that fits counts
        (ours.MissingExtraError, ExitCode.NO_EXTRA),
        (ours.MissingDataError, ExitCode.NO_INPUT),
        (ours.BusyError, ExitCode.TRY_AGAIN),
        (ours.WorkerError, ExitCode.TRY_AGAIN),
        (MemoryError, ExitCode.TRY_AGAIN),
        (ours.OutputError, ExitCode.NO_OUTPUT),
        (ours.DataError, ExitCode.BAD_DATA),
        (BrokenPipeError, ExitCode.PIPE_CLOSED),
        (OSError, ExitCode.INPUT_OUTPUT),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), ExitCode.OUR_BUG)


def _failed(sentence: str, code: ExitCode, *, said_by: str = "crowdwise: ") -> ExitCode:
    with contextlib.suppress(OSError):  # no one listens: the code must do
        print(said_by + printable(sentence), file=sys.stderr)
    return code


@contextlib.contextmanager
def _streams() -> Iterator[None]:
    """Standard output and error as they are, or leading nowhere if they are closed; empty at the end."""
    # A file that is opened later must not take the place of one that is closed.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # always the lowest that is free
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    with contextlib.ExitStack() as stack:
        nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
        if sys.stdout is None:
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        if sys.stderr is None:
            stack.enter_context(contextlib.redirect_stderr(nowhere))
        try:
            yield
        finally:
            _empty(sys.stdout)
            _empty(sys.stderr)


def _empty(stream: TextIO) -> None:
    """Flush, or let Python not try again, with a traceback, when it ends."""
    try:
        stream.flush()
    except OSError:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
