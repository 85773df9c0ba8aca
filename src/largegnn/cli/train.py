"""`largegnn train`: everything up to one vector for each entity, in a run folder."""

from __future__ import annotations

import json

import typer

from largegnn.cli import options
from largegnn.cli.tables import cost_rows, print_table

__all__ = ["train_command"]


@options.takes_request(
    *options.DATA_FLAGS, "--seed", "--device", "--cluster", folder=options.RunFolder(last="integrate")
)
def train_command(request: options.RunRequest, as_json: options.JsonOption = False) -> None:
    """Divide and train: everything up to one vector for each entity."""
    summary = request.run().summary
    if as_json:
        typer.echo(json.dumps({"folder": str(request.out), **summary.to_dict()}, indent=1))
        return
    history = () if summary.training is None else summary.training.history
    validated = [epoch for epoch in history if epoch.valid_hits is not None]
    columns = 3 if summary.settings.train.members == 1 else 4
    if validated:
        print_table(
            "valid links among themselves, mean of both directions, cosine",
            ("member", "epoch", "loss", "H@1")[-columns:],
            [
                (str(epoch.member + 1), str(epoch.epoch + 1), f"{epoch.loss:.3f}", f"{epoch.valid_hits:.4f}")[-columns:]
                for epoch in validated
            ],
        )
    print_table(f"run folder {request.out}", ("stage", "seconds", "peak MB"), cost_rows(summary.costs))
