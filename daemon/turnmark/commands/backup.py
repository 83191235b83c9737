"""`turnmark backup`: state and memory as one directory, while the daemon runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from turnmark.commands.invocation import Invocation
from turnmark.commands.serve import settings_of
from turnmark.commands.wording import count


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("path", metavar="PATH", help="a directory that is not there yet")


def run(invocation: Invocation) -> int:
    """Writes the backup and says what it holds.

    Raises:
        Refused: if there is something at PATH, or nothing to back up.
        Unavailable: if the disk fails; nothing is left at PATH.
    """
    from turnmark.backup import back_up  # noqa: PLC0415 - imports the store and the memory
    from turnmark.backup_manifest import Places  # noqa: PLC0415 - as above

    settings = settings_of(invocation)
    places = Places(state=settings.state, workspace=settings.workspace)
    path = Path(invocation.options.path).absolute()
    with invocation.progress("copying") as bar:
        manifest = back_up(places, path, lambda done, total: bar.show(done, total, "files"))
    if invocation.as_json:
        invocation.print_json({"path": str(path), "manifest": manifest})
        return 0
    held = f"{count(manifest.turns, 'turn')}, revision {manifest.revision}"
    invocation.print(
        f"backed up to {path}: {held}, {count(len(manifest.files), 'file')}",
        f"put back with `turnmark restore {path}` while no daemon runs",
    )
    return 0
