"""The stages of one call.

Choose transition, reference and path; pilot; trials; plan; counted run; reverse run; result.
`run.py` reads from top to bottom.
"""
