"""Mutation testing: small plausible bugs, one by one, and the tests that should see them.

``python -m tests.mutants`` puts each bug of `table.py` into a copy of the project and runs the
tests named beside it. A bug that survives is a test that is missing.
"""
