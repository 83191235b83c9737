"""`turnmark restore`: puts a backup in place, while no daemon runs there."""

from __future__ import annotations

import argparse
from pathlib import Path

from turnmark.commands.invocation import Invocation
from turnmark.commands.serve import settings_of
from turnmark.commands.wording import count, local_time


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("path", metavar="PATH", help="what `turnmark backup` wrote")
    parser.add_argument(
        "--force", action="store_true", help="move aside what is in state and workspace"
    )


def run(invocation: Invocation) -> int:
    """Restores and says where what was there before is now.

    Raises:
        PlaceTaken: if a daemon runs there.
        Refused: if PATH is no whole backup, or something is in its way.
        Unavailable: if the disk fails.
    """
    from turnmark.backup_manifest import Places  # noqa: PLC0415 - imports the store and the memory
    from turnmark.restore import restore  # noqa: PLC0415 - as above

    settings = settings_of(invocation)
    places = Places(state=settings.state, workspace=settings.workspace)
    done = restore(Path(invocation.options.path), places, force=invocation.options.force)
    aside = [str(path) for path in done.aside]
    if invocation.as_json:
        restored = {"state": str(places.state), "workspace": str(places.workspace)}
        invocation.print_json({**restored, "aside": aside, "manifest": done.manifest})
        return 0
    manifest = done.manifest
    invocation.print(
        f"restored the backup of {local_time(manifest.at.isoformat())}: "
        f"{count(manifest.turns, 'turn')}, revision {manifest.revision}",
        *(f"what was there before is in {path}" for path in aside),
        "`turnmark serve` starts with it; what came later is offered to memory again",
    )
    return 0
