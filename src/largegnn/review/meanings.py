"""What the words and numbers on the pages mean, in a sentence each: evidence, measures, reasons.

A column of another package's channel has no sentence here and is shown by its name alone.
"""

from __future__ import annotations

__all__ = ["MEANINGS", "meaning"]

MEANINGS = {
    "confidence": "how likely the pair is right, from 0 to 1",
    "score": "how the pair ranks, from 0 to 1; this run is not calibrated, so it is no probability",
    "raw score": "what pairs are ranked by: all evidence, added up by the scoring of the run",
    "margin": "how far the raw score lies above that of the best rival of either entity",
    "cosine": "how alike the vectors are that training gave the two entities",
    "csls": "the cosine, less for entities that are near everybody",
    "name": "how alike their names are",
    "text": "how alike all is that they say of themselves",
    "neighbors": "how alike the names of their neighbours are",
    "meaning": "how alike their texts are by the text encoder",
    "agreement": "how much equal values speak for the pair; rare values count more",
    "contradiction": "how much differing values speak against it",
    "literal": "names and values, taken together",
    "similarity": "vectors, names and values, taken together",
    "similarity_csls": "the similarity, less for entities that are like everybody",
    "support": "neighbours of the two that are matched with each other",
    "aligned": "has an accepted pair",
    "seed": "its counterpart was given",
    "isolated": "has no triple, so nothing is known of it",
    "not covered": "is in no subgraph, so it has no vector",
    "not mutual": "no candidate has it as its first choice",
    "below threshold": "its best pair is too unsure",
}


def meaning(name: str) -> str:
    """What a word on a page means; nothing where that is not known."""
    return MEANINGS.get(name, "")
