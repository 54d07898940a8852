"""The evidence atlas: the log evidence of posteriordb's posteriors, by two methods.

    python -m benchmarks.atlas                              # all that is not in the file yet
    python -m benchmarks.atlas arma-arma11 'nes*' --seed 1  # some; patterns as in a shell
    python -m benchmarks.atlas --methods ais,bridge --workers 2 --limit 600 --out results.jsonl

`registry.py` lists the posteriors, `models/` builds them, `stored.py` reads their data, evidences
known from elsewhere and the moments of posteriordb's draws. `row.py` measures one posterior in a
process of its own, `table.py` writes what was measured.
"""
