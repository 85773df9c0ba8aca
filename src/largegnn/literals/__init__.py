"""Compare names and values: candidate pairs with evidence."""
