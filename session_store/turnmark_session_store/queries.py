"""Running a query: rows as plain tuples, whose columns the asking function knows the types of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw


def rows_of(db: apsw.Connection, sql: str, parameters: Any = ()) -> list[Any]:
    """Returns all rows of a query."""
    return list[Any](db.execute(sql, parameters))


def row_of(db: apsw.Connection | apsw.Cursor, sql: str, parameters: Any = ()) -> Any:
    """Returns the first row of a query, or None."""
    row: Any = db.execute(sql, parameters).fetchone()
    return row


def value_of(db: apsw.Connection, sql: str, parameters: Any = ()) -> Any:
    """Returns the first column of the first row, None where there is none."""
    found = row_of(db, sql, parameters)
    return None if found is None else found[0]


def json_keys(keys: Iterable[int]) -> str:
    """Returns integer keys as the JSON array that `json_each` takes, however many."""
    return "[" + ",".join(map(str, keys)) + "]"
