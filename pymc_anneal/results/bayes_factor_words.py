"""Words for Bayes factors.

Two scales are in use: that of Jeffreys (1961, appendix B) in steps of half a decade, and that of
Kass & Raftery (1995, section 3.2) on ``2 log BF``. They name evidence for the favoured model,
whichever of the two it is.
"""

import numpy as np

_BARE = "not worth more than a bare mention"

# Words, and the log10 Bayes factors at which the next one begins.
_JEFFREYS = ((0.5, _BARE), (1.0, "substantial"), (1.5, "strong"), (2.0, "very strong"))
# Words, and the values of 2 log BF at which the next one begins.
_KASS_RAFTERY = ((2.0, _BARE), (6.0, "positive"), (10.0, "strong"))


def jeffreys(log_bayes_factor: float) -> str:
    """Return Jeffreys' word for a log Bayes factor in nats, of either sign."""
    log10 = abs(log_bayes_factor) / np.log(10)
    return next((word for end, word in _JEFFREYS if log10 < end), "decisive")


def kass_raftery(log_bayes_factor: float) -> str:
    """Return the word of Kass & Raftery for a log Bayes factor in nats, of either sign."""
    doubled = 2 * abs(log_bayes_factor)
    return next((word for end, word in _KASS_RAFTERY if doubled < end), "very strong")
