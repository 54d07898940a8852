"""Second opinions by nested sampling."""
