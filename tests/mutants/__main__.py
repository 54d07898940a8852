"""Print what survives: ``python -m tests.mutants [--only TEXT] [--workers N] [--log FILE]``."""

import argparse
import sys

from fnmatch import fnmatchcase
from pathlib import Path

from tests.mutants.first_failure import import_once
from tests.mutants.run import run_all, unexplained
from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name contains this text or glob")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--log", type=Path, help="file of outcomes, from which a run goes on")
    parser.add_argument("--list", action="store_true", help="print the table")
    args = parser.parse_args()
    mutants = [m for m in MUTANTS if fnmatchcase(m.name, f"*{args.only}*")]
    if args.list:
        print("\n".join(m.name for m in mutants))  # noqa: T201
        return 0
    import_once()
    outcomes = run_all(ROOT, mutants, args.workers, args.log)
    survivors = [o.name for o in outcomes if not o.killed_by]
    missing = [m.name for m in unexplained(mutants, outcomes)]
    share = f"{len(survivors) / max(len(outcomes), 1):.1%}"
    print(  # noqa: T201
        f"\n{len(outcomes)} of {len(mutants)} mutants, {len(survivors)} survive ({share}), "
        f"{len(missing)} without a reason:"
    )
    print("\n".join(missing))  # noqa: T201
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
