"""What the commands print about an alignment: figures with their protocol, what to expect, why others were left out."""

from __future__ import annotations

from typing import Any

from largegnn.cli.tables import number, print_table, share

__all__ = ["print_expectation", "print_figures"]

_MEASURES = ("hits@1", "hits@5", "hits@10", "mrr")


def print_figures(report: dict[str, Any]) -> None:
    """The ideal and the real setting, where there are test links."""
    protocol = report["protocol"]
    if report["ideal"] is None or protocol is None:
        return
    line = protocol_line(protocol)
    rows = [
        (name, *(share(figures["source_to_target"][key]) for key in _MEASURES), share(figures["mean"]["hits@1"]))
        for name, figures in report["ideal"].items()
    ]
    columns = ("decoding", "H@1", "H@5", "H@10", "MRR", "H@1 both ways")
    print_table(f"ideal setting: test sources rank all test targets; {line}", columns, rows)
    rows = [
        (name, *(share(figures[key]) for key in ("precision", "recall", "f1")), number(figures["pairs"]))
        for name, figures in report["real"].items()
    ]
    print_table(
        f"real setting: pairs among all entities that are no seeds; {line}",
        ("decision", "precision", "recall", "F1", "pairs"),
        rows,
    )


def print_expectation(report: dict[str, Any]) -> None:
    """How many pairs were put out, what the valid links promise, and why entities have no pair."""
    threshold = report["threshold"]
    if threshold is None:
        return
    promise = "not calibrated: too few valid links" if not report["calibrated"] else "from the valid links"
    print_table(
        f"pairs put out ({promise})",
        ("", "value"),
        [
            ("pairs", number(report["pairs"])),
            ("confidence from", share(threshold["confidence"])),
            ("expected precision", share(threshold["expected_precision"])),
            ("expected recall", share(threshold["expected_recall"])),
            ("expected F1", share(threshold["expected_f1"])),
        ],
    )
    print_table(
        "entities of both sides", ("", "entities"), [(name, number(count)) for name, count in report["reasons"].items()]
    )


def _ranked(protocol: dict[str, Any]) -> str:
    """How many of the test links were ranked, where those are not all."""
    ranked = protocol.get("num_ranked_links")
    return "" if ranked in (None, protocol["num_test_links"]) else f" ({number(ranked)} of them ranked)"


def protocol_line(protocol: dict[str, Any]) -> str:
    """A protocol in one line."""
    seeds = protocol["seed_share"]
    return (
        f"seeds from {protocol['seeds_from']} ({number(protocol['num_seeds'])}"
        f"{'' if seeds is None else f', {seeds:.0%} of the links'}), fold {protocol['fold']}, "
        f"{number(protocol['num_test_links'])} test links{_ranked(protocol)}, {protocol['features']}, "
        f"rounds {protocol['rounds']}, random seed {protocol['seed']}"
    )
