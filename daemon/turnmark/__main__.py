"""`python -m turnmark` is `turnmark`."""

from __future__ import annotations

import sys

from turnmark.main import main

if __name__ == "__main__":
    sys.exit(main())
