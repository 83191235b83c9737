"""Named places where a test may end or hold up the process: the only way to crash *between* steps.

Off unless the environment variable `TURNMARK_FAILPOINT` is set, as `name=kill` (SIGKILL at the
first visit), `name=kill@N` (at the Nth), or `name=error` (an OSError, once). Read once, when the
first failpoint is reached. A test in the same process puts a function in `hook` instead: it hears
every name and may raise.

The names, in the order of a turn's way:

- `store.before_migration`, `store.before_commit`, `store.after_commit`: the writer thread;
- `import.begun`, `import.placed`: an import before its first slice, and after each;
- `batch.claimed`, `batch.archived`, `batch.written`: a batch is claimed, its turns stand in
  `sources/`, its writer has answered;
- `install.before_journal`, `install.journalled`, `install.recorded`, `install.noted`: around the
  journal's commit, with the record of the revision on disk, and with the new texts noted there;
- `install.manifest`, `install.staged`, `install.exchanged`, `install.created`, `install.merged`,
  `install.flushed`, `install.file`, `install.revision`: the exchange's own steps, per file;
- `install.in_place`, `install.settled`, `install.cleared`, `install.indexed`: all files stand, the
  marks are set, the staging directory is empty, the index is in step;
- `core.rendered`, `core.replaced`: `core.md` before and after its rename;
- `start.taken_over`, `start.rolled_forward`: a start after the claims of a dead process are freed,
  and after its installs are finished;
- `erase.forgotten`, `erase.slice`, `erase.retired`, `erase.archived`, `erase.indexed`: a turn is
  forgotten, a slice of words is gone, blocks, source lines and index rows are gone;
- `forget.taken_out`: the blocks that don't go with their turns are gone, the turns are not yet;
- `remember.appended`, `remember.archived`: a fact that belongs to no conversation is a turn and
  claimed, and stands in `sources/`;
- `night.flushed`, `night.joined`, `night.answered`, `night.tidied`, `night.arranged`: what was owed
  is written, what says the same is one, a model was asked, its answers are installed, the core page
  is in order;
- `night.rendered`, `night.reported`, `night.said`: the core page stands, the report is written, the
  date is noted; `night.approved`: a held pass is installed and not yet taken off.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from functools import cache

_VARIABLE = "TURNMARK_FAILPOINT"
_visits: dict[str, int] = {}

hook: Callable[[str], None] | None = None
"""For tests in one process with what they test: called with each name that is reached."""


@cache
def _wanted() -> tuple[str, str, int] | None:
    setting = os.environ.get(_VARIABLE, "")
    if not setting:
        return None
    name, _, term = setting.partition("=")
    action, _, visit = term.partition("@")
    return name, action, int(visit or 1)


def failpoint(name: str) -> None:
    """Does nothing, unless a test asked for this very place."""
    if hook is not None:
        hook(name)
    wanted = _wanted()
    if wanted is None or wanted[0] != name:
        return
    _visits[name] = _visits.get(name, 0) + 1
    if _visits[name] != wanted[2]:
        return
    if wanted[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise OSError(errno.EIO, f"failpoint {name}")
