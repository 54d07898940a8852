"""The container of a run (InferenceData or DataTree), and everything that reads it.

`log_evidence`, `summary`, `compare`, `compare_estimators`, `power_sensitivity`, `from_sample_smc`
and the plots.
"""
