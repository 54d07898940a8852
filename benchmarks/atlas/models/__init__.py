"""Models of posteriordb, written anew for PyMC from its Stan programs, one file a kind."""
