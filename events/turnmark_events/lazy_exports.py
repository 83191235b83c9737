"""Names that a package offers, each imported from its module when it is first asked for.

`turnmark recall` must not pay for the daemon: without this, `import turnmark.client_sync` would
import what all of `turnmark` re-exports, the event loop and the server among them. A package lists
its names for type checkers under `if TYPE_CHECKING` and here for the interpreter; a test holds the
two lists together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exported_lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns the `__getattr__` of `package` for the names that each of its modules gives.

    `modules` maps a module's name within the package to the names it gives, with blanks between.
    What is found is kept in the package, so that the interpreter asks once for each name.
    Source: PEP 562.
    """
    homes = {
        name: f"{package}.{module}" for module, names in modules.items() for name in names.split()
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes[name]), name)
        setattr(import_module(package), name, found)
        return found

    return get
