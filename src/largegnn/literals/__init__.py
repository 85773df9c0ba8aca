"""Names and values become candidate pairs with evidence."""
