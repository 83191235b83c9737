"""`turnmark version`: which version is installed, and by what it runs."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version

from turnmark.commands.invocation import Invocation


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares that there are no arguments of its own."""
    del parser


def run(invocation: Invocation) -> int:
    """Prints the version of what is installed; a daemon that runs says its own in `status`."""
    installed = version("turnmark")
    if invocation.as_json:
        invocation.print_json({"version": installed, "python": platform.python_version()})
    else:
        invocation.print(f"turnmark {installed}")
    return 0
