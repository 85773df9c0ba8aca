"""Hold the parameters of a training run: tables shared by all subgraphs, the encoder, and their optimisers.

There are many entity rows, and a step changes few of them: they are held by an `EntityTable`. Relation rows and encoder
weights are few, and every step changes all of them: they are ordinary parameters with `torch.optim.RMSprop`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from largegnn.artifacts import FloatArray
from largegnn.embedding.encoders import Encoder
from largegnn.embedding.entity_table import ALPHA, EPS, fill_uniform, new_table
from largegnn.errors import ArtifactError
from largegnn.parts import ENCODERS

if TYPE_CHECKING:
    from largegnn.settings import TrainSettings

__all__ = ["EmbeddingModel", "load_weights"]


class EmbeddingModel:
    """Entity table, relation table and encoder, with their optimisers."""

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        options: TrainSettings,
        device: torch.device,
        seed: int,
        folder: Path | None = None,
    ) -> None:
        """Draw all parameters at random; if the entity table is kept in a file, the file is in `folder`."""
        make_encoder = ENCODERS[options.encoder]
        generator = torch.Generator().manual_seed(seed)
        self.device = device
        self.entities = new_table(num_entities, options, device, generator, folder)
        relations = torch.empty(2 * num_relations, options.dim)
        fill_uniform(relations, generator)
        self.relations = nn.Parameter(relations.to(device))
        # The encoder draws its weights from torch's global generator, which is seeded here and restored afterwards.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))
            self.encoder: Encoder = make_encoder(options.dim).to(device)
        self.dense = [self.relations, *self.encoder.parameters()]
        self.optimizer = torch.optim.RMSprop(self.dense, lr=options.learning_rate, alpha=ALPHA, eps=EPS)

    def step(self, ids: Tensor, rows: Tensor, learning_rate: float) -> None:
        """Apply the gradients of one step to the table's rows of `ids` (k,), and to the dense parameters.

        `rows` (k, d) are what `EntityTable.leaf_rows` returned for these ids.
        """
        gradient = rows.grad if rows.grad is not None else torch.zeros_like(rows)
        self.entities.update(ids, gradient, learning_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def dense_squares(self) -> list[Tensor]:
        """The mean squares of the dense parameters' gradients; zeros if no step was taken yet."""
        for parameter in self.dense:
            if not self.optimizer.state.get(parameter):
                self.optimizer.state[parameter] = {
                    "step": torch.tensor(0.0),
                    "square_avg": torch.zeros_like(parameter),
                }
        return [self.optimizer.state[parameter]["square_avg"] for parameter in self.dense]

    def dense_vectors(self) -> tuple[FloatArray, FloatArray]:
        """All dense parameters concatenated, and their mean squares likewise: two vectors in main memory."""
        values = torch.cat([parameter.detach().flatten() for parameter in self.dense])
        squares = torch.cat([square.flatten() for square in self.dense_squares()])
        return values.cpu().numpy(), squares.cpu().numpy()

    @torch.no_grad()
    def load_dense(self, values: FloatArray, squares: FloatArray) -> None:
        """Set the dense parameters and their mean squares from what `dense_vectors` returned."""
        sizes = [parameter.numel() for parameter in self.dense]
        for targets, vector in ((self.dense, values), (self.dense_squares(), squares)):
            for target, part in zip(targets, torch.split(torch.tensor(vector), sizes), strict=True):
                target.copy_(part.view_as(target))

    def tensors(self) -> dict[str, Tensor]:
        """All tensors of a checkpoint, by name."""
        named = {f"entities.{name}": tensor for name, tensor in self.entities.state_arrays().items()}
        for index, parameter in enumerate(self.dense):
            named[f"dense.{index}.values"] = parameter.detach()
            state = self.optimizer.state.get(parameter, {})
            named[f"dense.{index}.square_average"] = state.get("square_avg", torch.zeros_like(parameter))
        return named

    @torch.no_grad()
    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy tensors that `tensors` returned into the parameters and their state."""
        prefix = "entities."
        self.entities.load_state_arrays(
            {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        )
        # In place: a captured step refers to its arrays by their address.
        for index, (parameter, squares) in enumerate(zip(self.dense, self.dense_squares(), strict=True)):
            parameter.copy_(tensors[f"dense.{index}.values"])
            squares.copy_(tensors[f"dense.{index}.square_average"])

    def is_finite(self) -> bool:
        """Whether every parameter and its mean square is finite."""
        # A sum is finite only if all its terms are, and needs no array of results.
        return all(bool(torch.isfinite(tensor.sum())) for tensor in self.tensors().values())


@torch.no_grad()
def load_weights(encoder: Encoder, weights: FloatArray) -> None:
    """Set an encoder's parameters from one vector, in the order in which it lists them."""
    parameters = list(encoder.parameters())
    num_needed = sum(parameter.numel() for parameter in parameters)
    if len(weights) != num_needed:
        raise ArtifactError(f"the encoder has {num_needed} weights, but {len(weights)} were given")
    sizes = [parameter.numel() for parameter in parameters]
    parts = torch.split(torch.from_numpy(np.array(weights, dtype=np.float32)), sizes)
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.copy_(part.view_as(parameter))
