"""Arms of a fleet that are reported as unlike the others, truly and falsely.

    python -m benchmarks.fleet [--seed 1000] [--fleets 200] [--found 40]

Thousands of fleets of numbers alone, from seeds on which the threshold was not tuned: normal parameters, arms and
standard errors as in `NUMBERS`, nothing unlike. How many fleets report anything is the rate of false alarms. And how
often an arm is found that is off by `DISTANCES` spreads in one parameter and known as well as the best.
"""

import argparse

import numpy as np

from dynid_ros.fleet.fleet_table import FALSE_ALARM, Entry, compare

NUMBERS = (  # arms, parameters, spread, powers of ten of the standard errors
    (20, 40, 0.3, (-1.3, 0.0)),
    (20, 40, 0.3, (-1.8, 0.0)),
    (20, 40, 0.3, (-2.0, -1.9)),
    (30, 25, 0.3, (-2.0, 1.0)),
    (60, 10, 0.3, (-1.3, 0.0)),
    (60, 10, 0.0, (-1.3, 0.0)),
    (200, 40, 0.3, (-1.3, 0.0)),
)
DISTANCES = (4, 5, 6, 7, 8)


def numbers(rng: np.random.Generator, arms: int, names: int, spread: float, powers: tuple[float, float]) -> list[Entry]:
    """Entries of a fleet in which nothing is unlike."""
    entries = []
    for name in range(names):
        for arm in range(arms):
            std = 10.0 ** rng.uniform(*powers)
            value = 5.0 + spread * rng.standard_normal() + std * rng.standard_normal()
            entries.append(Entry(("links", "same"), f"arm_{arm}", "", -np.inf, f"p{name}", value, std))
    return entries


def found(kind: tuple, distance: float, seed: tuple[int, int]) -> bool:
    """Whether an arm is reported that is so many spreads off in one parameter."""
    rng = np.random.default_rng(seed)
    entries, (_, _, spread, powers) = numbers(rng, *kind), kind
    which, std = int(rng.integers(len(entries))), 10.0 ** powers[0]
    off = entries[which]._replace(value=5.0 + distance * spread + std * rng.standard_normal(), std=std)
    entries[which] = off
    return any(one.unlike and one.entry == off for one in compare(entries))


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--fleets", type=int, default=200, help="of numbers, of each kind")
    parser.add_argument("--found", type=int, default=40, help="fleets of each distance")
    options = parser.parse_args()
    total = 0
    for kind in NUMBERS if options.fleets else ():
        reporting = sum(
            any(one.unlike for one in compare(numbers(np.random.default_rng((options.seed, k)), *kind)))
            for k in range(options.fleets)
        )
        total += reporting
        arms, names, spread, powers = kind
        rate = reporting / options.fleets
        print(
            f"{arms} arms, {names} parameters, spread {spread}, errors 10^{powers[0]} to 10^{powers[1]}: {rate:.1%} of "
            f"fleets report something (asked: {FALSE_ALARM:.0%})",
            flush=True,
        )
    print(f"all kinds: {total} of {len(NUMBERS) * options.fleets} fleets", flush=True)
    for kind in (NUMBERS[2], NUMBERS[0], NUMBERS[4]) if options.found else ():
        seeds = [(options.seed, k) for k in range(options.found)]
        shares = [f"{np.mean([found(kind, size, seed) for seed in seeds]):.0%} at {size}" for size in DISTANCES]
        print(f"{kind[0]} arms, errors from 10^{kind[3][0]}: found {', '.join(shares)} spreads", flush=True)


if __name__ == "__main__":
    main()
