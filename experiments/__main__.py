"""The command: run the experiments that are named, or all, and make their pages."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

from exanova.errors import DatasetError
from experiments.harness import KEPT, PAGES, Report, Settings, keep
from experiments.render import write_pages

EXPERIMENTS = {
    "analytical": "a function of five variables, two of them redundant",
    "car": "Car Evaluation, against KernelSHAP",
    "nursery": "Nursery, against KernelSHAP",
    "mushroom": "Mushroom, against TreeSHAP",
    "poker": "Poker Hand at main effects and at rank 5,000",
    "connect4": "Connect-4 at main effects and at rank 5,000",
    "dota2": "Dota2 at main effects and at rank 4,000",
    "poker_importance": "Poker Hand: ranks against suits, against attention rollout",
    "mnist": "binarised MNIST up to rank 10,000, and an 8 explained as a 3",
    "tree_hfd": "against TreeHFD",
    "tictactoe": "tic-tac-toe, from the rules",
    "poker_hands": "poker hands, from the rules",
    "orthogonality": "the paper's basis and ours on every table",
}
"""Every experiment by the name of its module, in the order of the overview."""


def main(arguments: list[str] | None = None) -> int:
    """Run, write, say what does not hold; exit status 1 if anything does not."""
    options = parse(arguments)
    if options.list:
        print("\n".join(f"{name:18}{about}" for name, about in EXPERIMENTS.items()))
        return 0
    out = options.out or (KEPT / "quick" if options.quick else PAGES)
    settings = Settings(options.data, options.quick, out)
    failed = []
    for name in [] if options.render else options.names or EXPERIMENTS:
        if not succeeded(name, settings):
            failed.append(name)
        write_pages(out, list(EXPERIMENTS))  # a run that is broken off leaves the pages it has made
    if options.render:
        write_pages(out, list(EXPERIMENTS))
    if failed:
        print(f"did not succeed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*EXPERIMENTS, []], help="by default all")
    parser.add_argument("--data", type=Path, help="folder with the tables; by default $EXANOVA_DATA, else OpenML")
    parser.add_argument("--out", type=Path, help="folder of the pages; by default docs/paper")
    parser.add_argument("--quick", action="store_true", help="small tables: shows that everything runs")
    parser.add_argument("--render", action="store_true", help="make the pages again from the results there are")
    parser.add_argument("--list", action="store_true", help="list the names")
    return parser.parse_args(arguments)


def succeeded(name: str, settings: Settings) -> bool:
    """Run one experiment and keep what came out; errors are shown and do not stop the others."""
    print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
    started = time.perf_counter()
    try:
        report: Report = import_module(f"experiments.{name}").run(settings)
    except DatasetError as error:
        print(f"no data: {error}", file=sys.stderr)
        return False
    except Exception:
        print(f"failed\n{traceback.format_exc()}", file=sys.stderr)
        return False
    seconds = time.perf_counter() - started
    keep(report, name, seconds, settings)
    broken = [check for check in report.checks if not check.holds]
    print(f"{seconds:.0f} s, {len(report.checks) - len(broken)} of {len(report.checks)} checks hold", file=sys.stderr)
    for check in broken:
        print(f"  does not hold: {check.what}: {check.measured}", file=sys.stderr)
    return not broken


if __name__ == "__main__":
    sys.exit(main())
