"""The available datasets: their files, shapes, hashes and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OpenML:
    """The number of a table on OpenML, and the translation of its cells.

    Attributes:
        number: the number of the dataset there.
        rows: first and one past the last row that belong to us; ``None`` for all.
        values: translation from cells on OpenML to ours, where the inputs are written differently.
        classes: the same for the class.
    """

    number: int
    rows: tuple[int, int] | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One dataset.

    Attributes:
        file: name of its file in a folder.
        title: one line about it.
        source: who published it.
        shape: rows and inputs.
        classes: number of distinct classes.
        digest: sha256 of the sorted rows, see :func:`exanova.datasets.content.digest`.
        features: names of the inputs.
        openml: where to download it.
        train: how many of the first rows are for training; ``None`` if there is no split.
    """

    file: str
    title: str
    source: str
    shape: tuple[int, int]
    classes: int
    digest: str
    features: tuple[str, ...]
    openml: OpenML
    train: int | None = None

    @property
    def header(self) -> tuple[str, ...]:
        """Columns of the file: the split first, if there is one, the class last."""
        return (*(("split",) if self.train else ()), *self.features, "class")

    @property
    def is_images(self) -> bool:
        """Whether the file holds arrays instead of text."""
        return self.file.endswith(".npz")


CARDS = tuple(f"{what}{card}" for card in range(1, 6) for what in "SC")
SQUARES = tuple(f"{column}{row}" for column in "abcdefg" for row in range(1, 7))
HEROES = tuple(f"hero_{k}" for k in range(1, 114))
PIXELS = tuple(f"pixel_{row}_{column}" for row in range(28) for column in range(28))
MUSHROOM = (
    "cap-shape cap-surface cap-color bruises odor gill-attachment gill-spacing gill-size gill-color stalk-shape "
    "stalk-root stalk-surface-above-ring stalk-surface-below-ring stalk-color-above-ring stalk-color-below-ring "
    "veil-type veil-color ring-number ring-type spore-print-color population habitat"
)
UCI = "UCI Machine Learning Repository"

CATALOGUE: Mapping[str, Entry] = {
    "car": Entry(
        file="car.csv.gz",
        title="Car Evaluation: every combination of six properties of a car, and how acceptable it is",
        source=UCI,
        shape=(1728, 6),
        classes=4,
        digest="37b15c65e9336b932df3b39c8c2de98597f0e82934e60b31c345efae9273de25",
        features=("buying", "maint", "doors", "persons", "lug_boot", "safety"),
        openml=OpenML(40975),
    ),
    "nursery": Entry(
        file="nursery.csv.gz",
        title="Nursery: every combination of eight properties of a family, and the advice on its application",
        source=UCI,
        shape=(12960, 8),
        classes=5,
        digest="7ec54c7fcc4aec4b706cf63b13e8905103bf86a3f007e3658d77922eb3217fd6",
        features=("parents", "has_nurs", "form", "children", "housing", "finance", "social", "health"),
        openml=OpenML(26),
    ),
    "mushroom": Entry(
        file="mushroom.csv.gz",
        title="Mushroom: 22 properties of mushrooms, and whether they are edible (e) or poisonous (p)",
        source=UCI,
        shape=(8124, 22),
        classes=2,
        digest="0a6742091ff6b301283a138e7dd0d4c60dc7c2aae3aa306401d21c27cc3fd3db",
        features=tuple(MUSHROOM.split()),
        openml=OpenML(24),
    ),
    "poker": Entry(
        file="poker_train.csv.gz",
        title="Poker Hand, the rows for training: suit and rank of five cards, and the class of the hand",
        source=UCI,
        shape=(25010, 10),
        classes=10,
        digest="b3654e5a684c4a1f7ff160466d2d02ade674dc03a9c3edc4f3d91a4f12f8dd4e",
        features=CARDS,
        openml=OpenML(1567, rows=(0, 25010)),
    ),
    "poker_test": Entry(
        file="poker_test_head.csv.gz",
        title="Poker Hand, the first 100,000 rows for testing",
        source=UCI,
        shape=(100_000, 10),
        classes=10,
        digest="3060fc7c86a638b78b10bcf918e463880722fb04eb463af90e7fe3e164973dc5",
        features=CARDS,
        openml=OpenML(1567, rows=(25010, 125_010)),
    ),
    "connect4": Entry(
        file="connect4.csv.gz",
        title="Connect-4: positions after eight moves (x, o, b for blank), and the result for the first player",
        source=UCI,
        shape=(67557, 42),
        classes=3,
        digest="1c328e3749ee18091834ca784f39810cfe5f1e785c675b3a1cdd95a732507959",
        features=SQUARES,
        openml=OpenML(40668, values={"0": "b", "1": "o", "2": "x"}, classes={"0": "draw", "1": "loss", "2": "win"}),
    ),
    "dota2": Entry(
        file="dota2.csv.gz",
        title="Dota2 Games Results: the heroes of two teams (1, -1; 0 for not played), and the team that won",
        source=UCI,
        shape=(102_944, 116),
        classes=2,
        digest="1f8152c67170ed3cae4de8d2bb5d127612d46e5fe1d6a26e49540ea2645a6b59",
        features=("cluster_id", "game_mode", "game_type", *HEROES),
        openml=OpenML(45563),
        train=92650,
    ),
    "mnist": Entry(
        file="mnist_train.npz",
        title="MNIST, the rows for training: grey values of 28 x 28 pixels of handwritten digits",
        source="LeCun and Cortes, the MNIST database",
        shape=(60000, 784),
        classes=10,
        digest="386a0fff07efe9ae3f934853780556ca1fe630371d4964508a3e3256c2063b0e",
        features=PIXELS,
        openml=OpenML(554, rows=(0, 60000)),
    ),
    "mnist_test": Entry(
        file="mnist_test.npz",
        title="MNIST, the rows for testing",
        source="LeCun and Cortes, the MNIST database",
        shape=(10000, 784),
        classes=10,
        digest="292a2c8e9008782f6c6c94df46012a17c808c2666413d175e62502bbcf68dd61",
        features=PIXELS,
        openml=OpenML(554, rows=(60000, 70000)),
    ),
}
"""Every dataset by name."""
