"""Detection of outlier arms in a fleet: false alarms and detection rate.

    python -m benchmarks.fleet [--seed 1000] [--fleets 200] [--found 40]

Fleets consist of random numbers, from seeds on which the threshold was not tuned: normally distributed parameters, with
arms and standard errors as in `FLEET_KINDS`, and no outlier. The share of fleets with a report is the rate of false
alarms. The detection rate is that of an arm that deviates by `DISTANCES` spreads in one parameter and has the smallest
standard error.
"""

import argparse

import numpy as np

from dynid_ros.fleet.fleet_table import FALSE_ALARM, Entry, compare

FLEET_KINDS = (  # arms, parameters, spread, powers of ten of the standard errors
    (20, 40, 0.3, (-1.3, 0.0)),
    (20, 40, 0.3, (-1.8, 0.0)),
    (20, 40, 0.3, (-2.0, -1.9)),
    (30, 25, 0.3, (-2.0, 1.0)),
    (60, 10, 0.3, (-1.3, 0.0)),
    (60, 10, 0.0, (-1.3, 0.0)),
    (200, 40, 0.3, (-1.3, 0.0)),
)
DISTANCES = (4, 5, 6, 7, 8)


def fleet_entries(
    rng: np.random.Generator, arms: int, names: int, spread: float, powers: tuple[float, float]
) -> list[Entry]:
    """Return the entries of a fleet without outliers."""
    entries = []
    for name in range(names):
        for arm in range(arms):
            std = 10.0 ** rng.uniform(*powers)
            value = 5.0 + spread * rng.standard_normal() + std * rng.standard_normal()
            entries.append(Entry(("links", "same"), f"arm_{arm}", "", -np.inf, f"p{name}", value, std))
    return entries


def detects(kind: tuple, distance: float, seed: tuple[int, int]) -> bool:
    """Return whether an arm is reported that deviates by the given number of spreads in one parameter."""
    rng = np.random.default_rng(seed)
    entries = fleet_entries(rng, *kind)
    _, _, spread, powers = kind
    which = int(rng.integers(len(entries)))
    std = 10.0 ** powers[0]
    off = entries[which]._replace(value=5.0 + distance * spread + std * rng.standard_normal(), std=std)
    entries[which] = off
    return any(one.unlike and one.entry == off for one in compare(entries))


def main() -> None:
    """Print the rates of false alarms and of detection."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--fleets", type=int, default=200, help="fleets without outliers, of each kind")
    parser.add_argument("--found", type=int, default=40, help="fleets with an outlier, of each distance")
    options = parser.parse_args()
    total = 0
    for kind in FLEET_KINDS if options.fleets else ():
        reporting = sum(
            any(one.unlike for one in compare(fleet_entries(np.random.default_rng((options.seed, k)), *kind)))
            for k in range(options.fleets)
        )
        total += reporting
        arms, names, spread, powers = kind
        rate = reporting / options.fleets
        print(
            f"{arms} arms, {names} parameters, spread {spread}, errors 10^{powers[0]} to 10^{powers[1]}: {rate:.1%} of "
            f"fleets report something (goal: {FALSE_ALARM:.0%})",
            flush=True,
        )
    print(f"all kinds: {total} of {len(FLEET_KINDS) * options.fleets} fleets", flush=True)
    for kind in (FLEET_KINDS[2], FLEET_KINDS[0], FLEET_KINDS[4]) if options.found else ():
        seeds = [(options.seed, k) for k in range(options.found)]
        shares = [f"{np.mean([detects(kind, size, seed) for seed in seeds]):.0%} at {size}" for size in DISTANCES]
        print(f"{kind[0]} arms, errors from 10^{kind[3][0]}: found {', '.join(shares)} spreads", flush=True)


if __name__ == "__main__":
    main()
