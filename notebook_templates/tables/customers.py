"""A table to start with, made here: customers of a telephone company, and whether they leave.

Nothing in it is of real people. What decides is known: months, the contract, the price, calls for
help, and a region that matters only under one contract. Numbers and categories are missing as they
are in real tables.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from record import write_whole

NAME = "customers"
TARGET = "leaves"
ROWS = 4000
NEW_ROWS = 200


def made(rows: int, seed: int) -> pd.DataFrame:
    """Return a table of numbers, categories and missing values, with the target ``leaves``."""
    draw = np.random.default_rng(seed)
    months = draw.integers(0, 73, rows)
    contract = draw.choice(["monthly", "yearly", "two years"], rows, p=[0.55, 0.25, 0.2])
    region = draw.choice(["north", "east", "south", "west", "islands"], rows)
    price = np.round(draw.normal(60, 20, rows).clip(10, 140), 2)
    calls = draw.poisson(1.2, rows)
    paperless = draw.random(rows) < 0.6
    payment = draw.choice(["card", "transfer", "invoice"], rows)
    age = draw.integers(18, 90, rows).astype(float)
    score = (
        -1.2
        - 0.035 * months
        + 1.6 * (contract == "monthly")
        + 0.03 * (price - 60)
        + 0.8 * np.minimum(calls, 4) * (months < 36)
        + 1.5 * ((region == "islands") & (contract != "monthly"))
    )
    leaves = draw.random(rows) < 1 / (1 + np.exp(-score))
    age[draw.random(rows) < 0.15] = np.nan
    price[draw.random(rows) < 0.05] = np.nan
    known = draw.random(rows) > 0.08
    return pd.DataFrame(
        {
            "customer": [f"C{number:06d}" for number in range(rows)],
            "age": age,
            "months": months,
            "contract": contract,
            "region": region,
            "payment": pd.Series(payment).where(known),
            "paperless": paperless,
            "price": price,
            "calls": calls,
            TARGET: np.where(leaves, "yes", "no"),
        }
    )


def write(folder: Path, seed: int) -> Path:
    """Write the table, and ``new.csv``, other customers of whom it is not known; return the table.

    What is there already stays.
    """
    new, file = folder / "new.csv", folder / f"{NAME}.csv"
    if not file.exists():
        others = made(NEW_ROWS, seed + 1_000_003).drop(columns=TARGET)
        for place, table in ((new, others), (file, made(ROWS, seed))):
            text = table.to_csv(index=False).encode()
            write_whole(place, lambda stream, text=text: stream.write(text))
    return file
