"""Fit a logistic regression without negative weights: more evidence never makes a pair less likely.

In: features (n, f), the truth (n,), what each row counts, and where parameters are drawn to. Out: weights and offset.
Cost: a few dozen passes over the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from largegnn.machine.deferred import deferred

if TYPE_CHECKING:
    from scipy import optimize, special
else:
    optimize, special = deferred("scipy.optimize"), deferred("scipy.special")

__all__ = ["fit_logistic"]

Floats = npt.NDArray[np.float64]


def fit_logistic(features: Floats, right: Floats, counts: Floats, centre: Floats, spread: Floats) -> Floats:
    """Weights (f,), none below zero, and an offset, as one array (f + 1,).

    Each is drawn to its `centre` (f + 1,) as by a normal prior of that `spread`; an infinite one leaves it free.
    """

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logits, away = features @ parameters[:-1] + parameters[-1], (parameters - centre) / spread
        value = float(counts @ (np.logaddexp(0, logits) - right * logits)) + 0.5 * float(away @ away)
        error = counts * (special.expit(logits) - right)
        return value, np.append(error @ features, error.sum()) + away / spread

    bounds = [(0.0, None)] * features.shape[1] + [(None, None)]
    found = optimize.minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds).x
    return np.asarray(found, dtype=np.float64)
