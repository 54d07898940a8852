"""What is stored beside the models: data, evidences known from elsewhere, moments of draws."""

import json
import lzma
import re

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "data"
SAMPLERS = "evidences_of_samplers.json"

Data = dict[str, Any]


class Evidence(NamedTuple):
    """A log evidence in nats, its uncertainty, and the method it comes from."""

    value: float
    error: float
    kind: str


class Moments(NamedTuple):
    """Mean and standard deviation of a parameter, and the Monte Carlo error of the mean."""

    mean: float
    sd: float
    mcse: float


@cache
def load(dataset: str) -> Data:
    """Return the data of posteriordb under this name, lists as arrays."""
    with lzma.open(FOLDER / f"{dataset}.json.xz", "rt") as file:
        raw = json.load(file)
    return {k: np.asarray(v) if isinstance(v, list) else v for k, v in raw.items()}


@cache
def evidences() -> dict[str, Evidence]:
    """Return the evidences that need no run, by posterior."""
    files = (FOLDER / name for name in ("evidences.json", SAMPLERS))
    raw = {n: e for file in files for n, e in json.loads(file.read_text()).items()}
    return {name: Evidence(**entry) for name, entry in raw.items()}


@cache
def moments() -> dict[str, dict[str, Moments]]:
    """Return the moments of posteriordb's reference draws, by posterior and parameter."""
    with lzma.open(FOLDER / "moments.json.xz", "rt") as file:
        raw = json.load(file)
    return {n: {p: Moments(*v) for p, v in entry.items()} for n, entry in raw.items()}


def parse(parameter: str) -> tuple[str, tuple[int, ...]]:
    """Return name and index from 0 of a parameter of Stan: `theta[1,2]`, `mu`."""
    name, _, index = re.fullmatch(r"([^\[]+)(\[([\d,]+)\])?", parameter).groups()
    return name, tuple(int(i) - 1 for i in index.split(",")) if index else ()
