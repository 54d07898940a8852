"""The place in the user's code to which a warning belongs."""

import os
import sys

from pathlib import Path

# Of the file names of this package.
_PREFIX = f"{Path(__file__).parents[1]}{os.sep}"


def levels_to_caller() -> int:
    """Return the ``stacklevel`` of a warning for the first caller outside of this package.

    Python 3.12 has ``skip_file_prefixes`` for this.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PREFIX):
        frame, level = frame.f_back, level + 1
    return level
