"""The stage `evaluate`: see `largegnn.evaluation.evaluate`."""

from largegnn.evaluation.evaluate import EvaluationResult, evaluate

__all__ = ["EvaluationResult", "evaluate"]
