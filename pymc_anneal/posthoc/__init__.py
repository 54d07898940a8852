"""What follows from posterior draws: Savage-Dickey ratios, other priors, averages, modes."""
