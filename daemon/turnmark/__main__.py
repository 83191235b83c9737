"""`python -m turnmark` is `turnmark`; an agent's hook goes a shorter way, see `agent_hook`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["hook"]:
        from turnmark.agent_hook import quick

        if quick(sys.argv[1:]):
            sys.exit(0)
    from turnmark.main import main

    sys.exit(main())
