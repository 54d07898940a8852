"""Estimators of the log evidence with their errors, and verdicts on the estimates.

Annealed importance sampling, Bennett's acceptance ratio, stepping stones, thermodynamic
integration, MBAR and bridge sampling, as functions of arrays; diagnostics and verdicts.
"""
