"""How good ranks and pairs are."""
