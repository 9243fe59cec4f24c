"""Files: no damage goes unnoticed, and nothing hostile gets in."""

from __future__ import annotations

import copy
import hashlib
import json
import struct
import tracemalloc
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import exanova
from exanova import FunctionalANOVA
from exanova.effects import storage
from exanova.errors import FileFormatError, OutsideSupportWarning
from exanova.explain.importance import KINDS

# No damage goes unnoticed


@pytest.fixture
def small(tmp_path):
    """A small file, its bytes, and the folder."""
    anova = FunctionalANOVA(shrinkage=None).fit(
        np.array([["a", "u"], ["a", "v"], ["b", "u"]]), np.array([0.0, 1.0, 5.0])
    )
    anova.save(tmp_path / "small")
    return tmp_path / "small", (tmp_path / "small").read_bytes()


def test_every_truncation_is_noticed(small):
    path, body = small
    for length in range(len(body)):
        path.write_bytes(body[:length])
        with pytest.raises(FileFormatError):
            exanova.load(path)


def test_a_longer_file_is_noticed(small):
    path, body = small
    for more in (b"\0", body, b"x" * 100):
        path.write_bytes(body + more)
        with pytest.raises(FileFormatError):
            exanova.load(path)


def test_a_thousand_flipped_bytes_are_noticed(small):
    path, body = small
    rng = np.random.default_rng(8)
    for _ in range(1000):
        altered = bytearray(body)
        altered[rng.integers(len(body))] ^= int(rng.integers(1, 256))
        path.write_bytes(altered)
        with pytest.raises(FileFormatError):
            exanova.load(path)


def test_what_is_not_one_of_ours_is_refused(tmp_path):
    for content in (b"", b"\0" * 100, b"PK\x03\x04" + b"x" * 1000, b"EXANOVA", b"EXANOVA\n", b"EXANOVA\n" + b"\0" * 60):
        (tmp_path / "it").write_bytes(content)
        with pytest.raises(FileFormatError):
            exanova.load(tmp_path / "it")
    for place in (tmp_path, tmp_path / "missing", f"{tmp_path}/\0"):
        with pytest.raises(FileFormatError, match="cannot be read"):
            exanova.load(place)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no file without an end on this system")
def test_a_file_without_an_end_is_not_read_to_it():
    with pytest.raises(FileFormatError, match="not a decomposition"):
        exanova.load("/dev/zero")


# Nothing hostile gets in: files whose checksum is right


def sealed(header, body=b"", magic=storage.MAGIC, version=1, length=None):
    """The bytes of a file with this header, whatever it says, and a correct checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = struct.pack("<8sIQ", magic, version, len(text) if length is None else length) + text + body
    return content + hashlib.sha256(content).digest()


def opened(body):
    """The header and the arrays' bytes of a file."""
    _, _, length = struct.unpack_from("<8sIQ", body)
    return json.loads(body[20 : 20 + length]), body[20 + length : -32]


def entry(header, name):
    return next(e for e in header["arrays"] if e["name"] == name)


def refused(path, content):
    """The file is refused as a file, and reading it takes a bounded multiple of its size."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError):
            exanova.load(path)
        largest = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert largest < 3_000_000 + 60 * len(content)


def set_entry(name, **changes):
    return lambda header: entry(header, name).update(changes)


def repeat_arrays(header):
    """The same bytes a thousand times under other names."""
    header["arrays"] += [{**entry(header, "values"), "name": f"copy {k}"} for k in range(1000)]


HOSTILE_HEADERS = {
    "huge shape": set_entry("values", shape=[10**12, 10**6]),
    "huge shape of nothing": set_entry("values", shape=[0, 10**15]),
    "many lists of nothing": set_entry("members", shape=[10**9, 0]),
    "huge number": set_entry("values", shape=[10**400]),
    "infinite place": set_entry("values", at=float("inf")),
    "fractional place": set_entry("values", at=0.5),
    "negative place": set_entry("values", at=-8),
    "negative shape": set_entry("values", shape=[-1, -9]),
    "beyond the file": set_entry("values", at=10**6),
    "place as text": set_entry("values", at="0"),
    "shape as text": set_entry("values", shape="9"),
    "shape of shapes": set_entry("values", shape=[[9]]),
    "boolean shape": set_entry("variance", shape=[True]),
    "shape left out": lambda h: entry(h, "values").pop("shape"),
    "sixty-five axes": set_entry("values", shape=[1] * 65),
    "overlapping": set_entry("variance", at=0),
    "the same bytes many times": repeat_arrays,
    "objects": set_entry("values", dtype="|O"),
    "structures": set_entry("values", dtype=[["a", "<f8"]]),
    "another dtype": set_entry("values", dtype="<i8"),
    "narrow integers": set_entry("order", dtype="<i4"),
    "real integers": set_entry("key_start", dtype="<f8"),
    "unknown dtype": set_entry("values", dtype="<c16"),
    "an array twice": lambda h: h["arrays"].append(entry(h, "values")),
    "no arrays": lambda h: h.update(arrays=[]),
    "arrays that are none": lambda h: h.update(arrays=7),
    "arrays of numbers": lambda h: h.update(arrays=[1, 2]),
    "no document": lambda h: h.pop("document"),
    "a document that is a list": lambda h: h.update(document=[]),
    "nothing": lambda h: h.clear(),
}


@pytest.mark.parametrize("name", HOSTILE_HEADERS)
def test_a_hostile_header_is_refused(name, small):
    path, body = small
    header, arrays = opened(body)
    HOSTILE_HEADERS[name](header)
    refused(path, sealed(header, arrays))


def test_a_file_that_is_only_resealed_loads(small):
    path, body = small
    path.write_bytes(sealed(*opened(body)))
    assert exanova.load(path).predict(np.array([["b", "u"]])) == pytest.approx([5.0])


@pytest.mark.parametrize(
    "content",
    [
        sealed(b'{"arrays": [], "document": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        sealed(b"[" * 100_000),
        sealed(b"{" * 10),
        sealed(b"\xff\xfe\x00"),
        sealed(b""),
        sealed(b"[]"),
        sealed(b"null"),
        sealed(b'{"arrays": [], "document": ' + b"9" * 5000 + b"}"),
        sealed({"arrays": [], "document": {}}),
        sealed({"arrays": [], "document": {}}, magic=b"EXANOVA!"),
        sealed({"arrays": [], "document": {}}, version=storage.VERSION + 1),
        sealed({"arrays": [], "document": {}}, version=0),
        sealed({"arrays": [], "document": {}}, version=2**32 - 1),
        sealed({"arrays": [], "document": {}}, length=2**63),
        sealed({"arrays": [], "document": {}}, length=2**64 - 1),
    ],
    ids=lambda content: repr(content[:40]),
)
def test_a_header_that_is_none_is_refused(content, tmp_path):
    refused(tmp_path / "it", content)


def test_a_later_version_asks_for_an_update(small):
    path, body = small
    later = storage.VERSION + 1
    path.write_bytes(sealed(*opened(body), version=later))
    with pytest.raises(FileFormatError, match=rf"version {later} .*, this exanova reads 1 to .* update exanova"):
        exanova.load(path)


@pytest.fixture
def parts(tmp_path):
    """A path, and the document and arrays of a file of three features to all orders."""
    rng = np.random.default_rng(9)
    rows = np.array(list(product(range(2), range(3), range(2))))[:-2]
    X = pd.DataFrame(rows, columns=list("abc"))
    X["bin"] = rng.normal(size=len(X))
    anova = FunctionalANOVA(shrinkage=None, max_order=3, n_bins={"bin": 3}).fit(X, rng.normal(size=(len(X), 2)))
    anova.save(tmp_path / "it")
    return tmp_path / "it", *storage.read(tmp_path / "it")


def put(name, place, value):
    def change(document, arrays):
        arrays[name][place] = value

    return change


def as_dtype(name, dtype):
    def change(document, arrays):
        arrays[name] = arrays[name].astype(dtype)

    return change


def replaced(name, array):
    def change(document, arrays):
        arrays[name] = array(arrays[name])

    return change


def document_at(*path, value):
    def change(document, arrays):
        place = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


FEATURE = ("encoding", "features", 0)

HOSTILE_PARTS = {
    "chain beyond the lookup": put("chain", (-1, 1), 10**9),
    "chain into another subset": put("chain", (-1, 1), 0),
    "negative chain": put("chain", (-1, 1), -1),
    "lookup beyond the cells": put("lookup", -1, 10**6),
    "lookup below -1": put("lookup", -1, -5),
    "lookup of another cell": put("lookup", 1, 1),
    "a hole filled": lambda d, a: a["lookup"].__setitem__(int(np.flatnonzero(a["lookup"] < 0)[0]), 0),
    "a cell removed": lambda d, a: a["lookup"].__setitem__(int(a["cell_key"][-1]), -1),
    "cell key beyond": put("cell_key", -1, 10**9),
    "cell key negative": put("cell_key", 1, -1),
    "cell start beyond": put("cell_start", 2, 10**12),
    "cell start falling": put("cell_start", 2, 0),
    "cell start not at zero": put("cell_start", 0, 1),
    "key start beyond": put("key_start", 2, 10**12),
    "key start falling": put("key_start", 2, 0),
    "a member beyond the features": put("members", (-1, 0), 99),
    "a negative member": put("members", (-1, 0), -1),
    "members out of order": lambda d, a: a["members"].__setitem__(-1, a["members"][-1][::-1]),
    "order beyond the members": put("order", -1, 9),
    "a negative order": put("order", 0, -1),
    "the intercept missing": put("order", 0, 1),
    "sizes that are not the levels'": put("sizes", 0, 3),
    "negative sizes": put("sizes", 0, -2),
    "weights of nothing": put("weight", 0, 0.0),
    "negative weights": put("weight", 1, -1.0),
    "weights that are no numbers": put("weight", 1, np.nan),
    "values that are no numbers": put("values", (1, 0), np.nan),
    "an infinite value": put("values", (1, 0), np.inf),
    "a negative variance": put("variance", 0, -1.0),
    "integers as reals": as_dtype("order", "<f8"),
    "reals as integers": as_dtype("values", "<i8"),
    "a narrow chain": as_dtype("chain", "<i4"),
    "bytes for a lookup": as_dtype("lookup", "|u1"),
    "values of one output": replaced("values", lambda v: v[:, :1]),
    "values cut": replaced("values", lambda v: v[:-1]),
    "values without axes": replaced("values", lambda v: v[0, 0]),
    "no values": replaced("values", lambda v: v[:0]),
    "no subsets": replaced("order", lambda v: v[:0]),
    "a lookup with two axes": replaced("lookup", lambda v: v[None]),
    "members with one axis": replaced("members", lambda v: v[:, 0]),
    "no members": replaced("members", lambda v: v[:, :0]),
    "Shapley values of others": replaced("shapley", lambda v: v[:1]),
    "R2 of others": replaced("certificate.r2", lambda v: v[:1]),
    "MSE without axes": replaced("certificate.mse", lambda v: v[0]),
    "an array in place of a text": lambda d, a: a.update({"certificate.route": a["variance"]}),
    "an unknown certificate": lambda d, a: a.update({"certificate.other": a["variance"]}),
    "a missing array": lambda d, a: a.pop("cell_key"),
    "a code beyond the levels": document_at(*FEATURE, "codes", 0, value=10**6),
    "a code below -1": document_at(*FEATURE, "codes", 0, value=-2),
    "a bin beyond the levels": document_at("encoding", "features", 3, "codes", 0, value=99),
    "falling edges": document_at("encoding", "features", 3, "edges", 0, value=1e9),
    "edges that are no numbers": document_at("encoding", "features", 3, "edges", 0, value=float("nan")),
    "more edges than bins": document_at("encoding", "features", 3, "edges", value=list(range(99))),
    "fewer labels than levels": document_at(*FEATURE, "labels", value=[]),
    "a level that cannot be one": document_at(*FEATURE, "values", 0, value=[1]),
    "a level of an unknown type": document_at(*FEATURE, "levels", 0, value={"type": "code", "value": "1"}),
    "the same level twice": document_at(*FEATURE, "values", 0, value=1),
    "a feature of another name": document_at(*FEATURE, "name", value="z"),
    "features that are none": document_at("encoding", "features", value=7),
    "an output too many": document_at("schema", "outputs", value=["a", "b", "c"]),
    "one output that are two": document_at("schema", "single", value=True),
    "an unknown table library": document_at("schema", "kind", value="os"),
    "labels of others": document_at("schema", "labels", 0, value=["p", "q"]),
    "a plan of text": document_at("plan", "subsets", value="many"),
    "a plan with more": document_at("plan", "more", value=1),
    "a plan with less": lambda d, a: d["plan"].pop("route"),
    "a certificate of text": document_at("certificate", "orthogonality", value="small"),
    "notes that are none": document_at("certificate", "notes", value="note"),
    "redundancy of numbers": document_at("redundant", value=[1]),
    "a selection of numbers": document_at("selected", value=[1, 2]),
    "threads of text": document_at("parameters", "n_jobs", value="all"),
    "parameters that are a list": document_at("parameters", value=[1]),
}


@pytest.mark.parametrize("name", HOSTILE_PARTS)
def test_hostile_contents_are_refused(name, parts):
    path, document, arrays = parts
    HOSTILE_PARTS[name](document, arrays)
    refused(path, storage.encode(document, arrays))


def test_contents_altered_at_random_and_sealed_are_refused_or_answer(parts):
    """Whatever a file says, loading it raises FileFormatError or gives an object that answers."""
    path, document, arrays = parts
    rng = np.random.default_rng(10)
    rows = pd.DataFrame({"a": [0, 1], "b": [0, 2], "c": [0, 0], "bin": [0.0, 0.5]})
    loaded = 0
    for _ in range(200):
        changed = copy.deepcopy(document), {k: v.copy() for k, v in arrays.items()}
        (alter_array if rng.random() < 0.5 else alter_document)(rng, *changed)
        path.write_bytes(storage.encode(*changed))
        try:
            anova = exanova.load(path)
        except FileFormatError:
            continue
        loaded += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutsideSupportWarning)
            anova.set_params(handle_unknown="ignore", strict=False, memory_limit=None, n_jobs=1)
            anova.predict(rows)
            anova.explain(rows).to_frame()
            anova.interactions(rows, order=3)
        for kind in KINDS:
            anova.importance(kind)
        assert str(anova)
        assert [anova.effects_[s] for s in anova.effects_]
        anova.compare(anova)
    assert 0 < loaded < 200


def alter_array(rng, document, arrays):
    name = rng.choice(sorted(arrays))
    flat = arrays[name].reshape(-1)
    choices = [-(2**31), -1, 0, 1, 2, 7, 2**31 - 1]
    flat[rng.integers(len(flat))] = rng.choice(choices)


def alter_document(rng, document, arrays):
    """One leaf replaced by something else, in a random branch."""
    place, key = document, None
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            place.update(x=1) if isinstance(place, dict) else place.append(1)
            return
        key = keys[rng.integers(len(keys))]
        if not isinstance(place[key], dict | list) or rng.random() < 0.1:
            break
        place = place[key]
    others = [None, True, -1, 0, 3, 10**30, 0.5, float("nan"), float("inf"), "", "x", [], [1], {}, {"type": "date"}]
    place[key] = others[rng.integers(len(others))]


def test_a_file_says_a_version_that_exanova_0_1_refuses(small):
    # 0.1 reads version 1 alone, and would fail on the fields of a certificate of today with another reason.
    _, body = small
    assert int.from_bytes(body[8:12], "little") == storage.VERSION > 1
