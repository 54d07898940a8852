"""Run the atlas, or a part of it, and write its table; see the docstring of the package."""

import argparse
import fnmatch
import itertools

from pathlib import Path

from benchmarks.atlas import campaign, table
from benchmarks.atlas.registry import ALL, POSTERIORS


def main() -> None:
    options = parse()
    rows = [
        campaign.Row(*row)
        for row in itertools.product(options.names, options.methods, range(*options.seeds))
    ]
    rows.sort(key=lambda row: ALL[row.model].dims)
    wanted = campaign.missing(rows, campaign.read(options.out), options.retry)
    print(f"{len(wanted)} of {len(rows)} rows to run; records in {options.out}", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    campaign.run(wanted, options.out, options.limit, options.workers, report)
    found = campaign.read(options.out)
    table.write(found, options.out)
    if options.check and (faults := table.faults(found)):
        raise SystemExit("\n".join(faults))


def report(record: dict) -> None:
    print(table.line(record), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.atlas", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(POSTERIORS), help="names or patterns")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    parser.add_argument("--methods", default="ais", help="ais, bridge, or both with a comma")
    parser.add_argument("--limit", type=float, default=300, help="CPU seconds a row")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--out", type=Path, default=campaign.RESULTS, help="records, as JSON lines")
    parser.add_argument("--retry", action="store_true", help="rows that failed run again")
    parser.add_argument("--check", action="store_true", help="fail where a row is wrong")
    options = parser.parse_args()
    options.names = matching(parser, options.names)
    options.methods = options.methods.split(",")
    if unknown := set(options.methods) - set(campaign.CALLS):
        parser.error(f"no method {', '.join(unknown)}; there are {', '.join(campaign.CALLS)}")
    options.seeds = options.seed, options.seed + options.seeds
    return options


def matching(parser: argparse.ArgumentParser, patterns: list[str]) -> list[str]:
    """Return the names that match, in the order of the registry."""
    for pattern in patterns:
        if not fnmatch.filter(ALL, pattern):
            parser.error(f"no posterior matches {pattern!r}; registry.py has their names")
    return [n for n in ALL if any(fnmatch.fnmatchcase(n, p) for p in patterns)]


if __name__ == "__main__":
    main()
