"""Fit a logistic regression without negative weights, regularised towards given parameters.

In: features (n, f), labels (n,), sample weights, and a normal prior of the parameters. Out: weights and offset. Weights
are not negative, so that more evidence never makes a pair less likely. Cost: a few dozen passes over the rows.
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


def fit_logistic(
    features: Floats, labels: Floats, sample_weight: Floats, prior_mean: Floats, prior_std: Floats
) -> Floats:
    """Fit the weights (f,), none below zero, and the offset; return them as one array (f + 1,).

    The parameters have normal priors with `prior_mean` and `prior_std` (f + 1,); an infinite deviation is no prior.
    """

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logits = features @ parameters[:-1] + parameters[-1]
        deviation = (parameters - prior_mean) / prior_std
        value = float(sample_weight @ (np.logaddexp(0, logits) - labels * logits)) + 0.5 * float(deviation @ deviation)
        error = sample_weight * (special.expit(logits) - labels)
        return value, np.append(error @ features, error.sum()) + deviation / prior_std

    bounds = [(0.0, None)] * features.shape[1] + [(None, None)]
    parameters = optimize.minimize(loss, prior_mean, jac=True, method="L-BFGS-B", bounds=bounds).x
    return np.asarray(parameters, dtype=np.float64)
