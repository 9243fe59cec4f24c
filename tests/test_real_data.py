"""Ranks on the real tables, counted once independently of this library, with effects that are orthogonal."""

from __future__ import annotations

import csv
import functools
import gzip

import numpy as np
import pytest

from exanova import FunctionalANOVA


@functools.cache
def read_table(path):
    """Feature names, rows of text (n, d) and the class of each row (n,)."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    cells = np.array(rows)
    assert header[-1] == "class"
    return header[:-1], cells[:, :-1], cells[:, -1]


def one_hot(classes):
    """One 0/1 output for each class."""
    return (classes[:, None] == np.unique(classes)).astype(float)


def check(anova, rank, n_functions):
    certificate = anova.certificate_
    assert certificate.rank == rank == sum(certificate.rank_by_order)
    assert certificate.n_functions == n_functions
    assert certificate.unique == (rank == n_functions)
    assert certificate.orthogonality <= 1e-12
    assert certificate.exact, certificate.notes


@pytest.mark.parametrize(
    ("file", "rank", "candidates"),
    [("mushroom.csv.gz", 86, 96), ("poker_train.csv.gz", 76, 76), ("connect4.csv.gz", 83, 85)],
)
def test_rank_of_the_main_effects(data_directory, file, rank, candidates):
    _, rows, classes = read_table(data_directory / file)
    anova = FunctionalANOVA(shrinkage=None, max_order=1).fit(rows, one_hot(classes))
    check(anova, rank, candidates)
    assert {redundancy.features for redundancy in anova.certificate_.redundant} <= set(anova.effects_)


def test_rank_of_the_main_effects_of_the_heroes_of_dota2(data_directory):
    names, rows, classes = read_table(data_directory / "dota2.csv.gz")
    heroes = [k for k, name in enumerate(names) if name.startswith("hero")]
    assert len(heroes) == 113
    check(FunctionalANOVA(shrinkage=None, max_order=1).fit(rows[:, heroes], one_hot(classes)), 221, 223)


def test_rank_of_the_main_effects_of_binarised_mnist(data_directory):
    with np.load(data_directory / "mnist_train.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    images = next(a for a in arrays.values() if a.ndim > 1)
    digits = next(a for a in arrays.values() if a.ndim == 1)
    pixels = (images.reshape(len(images), -1) > 127).astype(np.uint8)
    assert pixels.shape == (60000, 784)
    check(FunctionalANOVA(shrinkage=None, max_order=1).fit(pixels, (digits == 3).astype(float)), 674, 677)


@pytest.mark.parametrize(
    ("file", "rank", "by_order"),
    [("poker_train.csv.gz", 2506, (1, 75, 2430)), ("connect4.csv.gz", 2058, (1, 82, 1975))],
)
def test_rank_of_all_pairs(data_directory, file, rank, by_order):
    _, rows, classes = read_table(data_directory / file)
    anova = FunctionalANOVA(shrinkage=None, max_order=2).fit(rows, one_hot(classes))
    assert anova.certificate_.rank_by_order == by_order
    check(anova, rank, anova.plan_.functions)
    assert (np.isfinite(anova.certificate_.r2) & (anova.certificate_.r2 <= 1)).all()


def test_a_table_with_every_combination_takes_the_grid_and_leaves_nothing(data_directory):
    _, rows, classes = read_table(data_directory / "car.csv.gz")
    anova = FunctionalANOVA(shrinkage=None, max_order=None).fit(rows, one_hot(classes))
    check(anova, 1728, 1728)
    assert anova.certificate_.route == "grid"
    assert anova.certificate_.saturated
    assert anova.certificate_.reconstruction <= 1e-10
