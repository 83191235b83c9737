"""Where a convex function is least."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray

_STEPS = 60
_STILL = 1e-6


def least(loss: Callable[[Array], tuple[float, Array, Array]], at: Array) -> Array:
    """Returns where a convex function is least: Newton's method, steps halved while they rise."""
    value, gradient, hessian = loss(at)
    for _ in range(_STEPS):
        step = np.linalg.solve(hessian, gradient)
        while (found := loss(at - step))[0] > value and np.abs(step).max() > _STILL:
            step = step / 2
        at, (value, gradient, hessian) = at - step, found
        if np.abs(step).max() <= _STILL:
            break
    return at
