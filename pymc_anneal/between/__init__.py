"""Direct Bayes factors and constraints: runs between two densities, from draws of one of them."""
