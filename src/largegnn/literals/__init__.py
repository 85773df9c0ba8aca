"""Compare the names and values of two graphs: find candidate pairs with evidence."""
