"""What each worker of a group does: `torchrun -m tests.embedding.grouped_run FOLDER`, the pair in pair.npz.

It trains the pair, once more from the finished checkpoints with a start that differs from worker to worker, and a
single subgraph that leaves all but one worker without work. Each worker writes what it ended with, and which worker
saved checkpoints. The facts of the exchange are checked on the spot.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torch.distributed as dist

from largegnn.embedding.checkpoint import CheckpointFolder
from largegnn.embedding.exchange import Exchange
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.trainer import Trainer
from tests.embedding.small_runs import (
    CPU,
    copies,
    hits_of,
    load_subgraphs,
    random_subgraphs,
    small_options,
    small_trainer,
    train_options,
)

# One process makes twice as many updates in an epoch as two, so two get twice the epochs.
ALONE = train_options(dim=32, epochs=10, negatives=300, batch_size=32, validate_every=2)
GROUPED = train_options(dim=32, epochs=20, negatives=300, batch_size=32, validate_every=4)


def train_pair(folder: Path, pair: Path, options: TrainOptions, seed: int = 0) -> tuple[Trainer, list[float]]:
    """Train the pair with real validation; also how many hits each look of this worker found."""
    subgraphs, more = load_subgraphs(pair)
    num_entities, num_relations = (int(number) for number in more["counts"])
    looks: list[float] = []

    def validate(model: EmbeddingModel) -> float:
        looks.append(hits_of(model, num_relations, more["all_triples"], more["valid_links"]))
        return looks[-1]

    model = EmbeddingModel(num_entities, num_relations, options, CPU, seed)
    last, best = CheckpointFolder(folder / "last"), CheckpointFolder(folder / "best")
    how = (model, lambda _: subgraphs, num_relations, options, 0)
    trainer = Trainer(*how, checkpoints=last, best=best, validate=validate)
    trainer.run()
    return trainer, looks


def check_exchange(exchange: Exchange) -> None:
    """Sums and means over workers that differ in what they have."""
    rank, size = exchange.rank, exchange.size
    assert exchange.shard(list(range(5))) == list(range(rank, 5, size))
    # Worker r has rows 0 .. r with gradients of r + 1: row i is shared by the workers from i on.
    ids, gradient = exchange.gather_rows(torch.arange(rank + 1), torch.full((rank + 1, 3), rank + 1.0))
    assert ids.tolist() == list(range(size))
    expected = [sum(other + 1.0 for other in range(row, size)) / size for row in range(size)]
    assert gradient.tolist() == [[value] * 3 for value in expected]
    having, lacking = torch.nn.Parameter(torch.zeros(2, 2)), torch.nn.Parameter(torch.zeros(3))
    having.grad = torch.full((2, 2), float(rank))
    lacking.grad = None if rank else torch.ones(3)
    exchange.reduce_dense([having, lacking])
    assert having.grad.tolist() == [[sum(range(size)) / size] * 2] * 2
    assert lacking.grad is not None
    assert lacking.grad.tolist() == [1 / size] * 3
    assert exchange.mean(10.0 * rank, rank, CPU) == 10.0
    assert exchange.broadcast_value({"hits": 0.1 + rank, "name": "größer"}, CPU) == {"hits": 0.1, "name": "größer"}
    assert exchange.broadcast_value(None if rank else [], CPU) == []


def main() -> None:
    """Play one worker's part."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    folder, rank = Path(sys.argv[1]), dist.get_rank()
    savers: list[str] = []
    save = CheckpointFolder.save

    def noted(self: CheckpointFolder, *args: Any) -> None:
        savers.append(self.folder.name)
        save(self, *args)

    CheckpointFolder.save = noted  # type: ignore[method-assign, assignment]
    check_exchange(Exchange())
    trainer, looks = train_pair(folder, folder / "pair.npz", GROUPED)
    resumed, _ = train_pair(folder, folder / "pair.npz", GROUPED, seed=rank)
    idle = small_trainer(random_subgraphs(1), small_options())
    idle.run()
    for name, model in (("trained", trainer.model), ("resumed", resumed.model), ("idle", idle.model)):
        safetensors.torch.save_file(copies(model), folder / f"{name}-{rank}.safetensors")
    facts = {"savers": savers, "looks": looks, "history": [asdict(record) for record in trainer.history]}
    facts["idle_losses"] = [record.loss for record in idle.history]
    (folder / f"facts-{rank}.json").write_text(json.dumps(facts))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
