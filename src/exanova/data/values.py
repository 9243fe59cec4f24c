"""Model values: the outputs of a model on given rows, or outputs given with the rows, as one checked array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exanova.argument_checks import check_choice
from exanova.data.alignment import to_batch, to_rows
from exanova.data.class_outputs import class_outputs, own_names
from exanova.data.failing_models import why_it_failed
from exanova.data.recoding import blocks
from exanova.data.table import Table
from exanova.data.weights import group_totals
from exanova.errors import ExanovaError, InputError, InputTypeError, ModelError
from exanova.messages import Parameter, count_of
from exanova.progress import Progress
from exanova.typing import FloatArray, IntArray

RESPONSE_METHODS = ("predict_proba", "predict", "decision_function")


@dataclass(frozen=True, eq=False)
class ModelValues:
    """Outputs of a model on k rows.

    Attributes:
        values: (k, m) one column for each output.
        output_names: (m,) names of the outputs.
        single: whether the model gave one number for each row (shape (k,)) and not a vector.
        within: (k, m) variance E[(y - E[y|x])^2 | x] of the outputs that were averaged at each row.
        calls: number of rows the model was called on.
        repeats: whether it gave the same outputs when it was called on some of them again, if it was.
    """

    values: FloatArray
    output_names: tuple[str, ...]
    single: bool
    within: FloatArray
    calls: int
    repeats: bool = True


def is_model(candidate: Any) -> bool:
    """Whether ``candidate`` is a callable or an estimator, and not an array of outputs.

    >>> is_model(len), is_model([1.0, 2.0])
    (True, False)
    """
    return callable(candidate) or _is_estimator(candidate)


def evaluate(
    model: Any,
    table: Table,
    rows: IntArray,
    *,
    response_method: str = "auto",
    batch_size: int | None = None,
    output_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> ModelValues:
    """Call the model on the rows ``rows`` (k,) of the table.

    The model receives a table of the kind that was given. Of an estimator ``predict_proba`` is called if it exists,
    else ``predict``, unless ``response_method`` names the method; anything else is called. Of a classifier of two
    classes the probability of the second one is taken, unless ``predict_proba`` is named, which gives both.

    >>> table = Table.read(np.array([[0, 1], [1, 1]]))
    >>> evaluate(lambda X: X.sum(axis=1), table, np.array([1, 0])).values.tolist()
    [[2.0], [1.0]]
    """
    respond = _responder(model, response_method)
    every = response_method != "auto" or not hasattr(model, "predict_proba")
    if progress is not None:
        progress.phase("model values", len(rows))
    parts: list[FloatArray] = []
    natural: Sequence[str] | None = None
    for batch in _batches(rows, batch_size):
        outputs, natural = _respond(respond, _named_classes(model), every, table, batch)
        parts.append(outputs)
        _check_same_width(parts)
        if progress is not None:
            progress.step(len(batch))
    values = np.concatenate(parts)
    matrix = values.reshape(len(values), -1)
    names = _names(output_names, matrix.shape[1], natural)
    return ModelValues(matrix, names, values.ndim == 1, np.zeros_like(matrix), len(rows))


def align(
    outputs: Any,
    n: int,
    *,
    index: Any = None,
    kept: IntArray | None = None,
    output_names: Sequence[str] | None = None,
    features: Sequence[str] = (),
) -> ModelValues:
    """Outputs that were computed elsewhere, one (or one vector) for each of the ``n`` rows given.

    Outputs of pandas are matched with the ``index`` of the rows, if these have one, by label; others by position.
    Only the rows ``kept`` are returned and have to be finite. The columns of a dataframe name the outputs, and so does
    the name of a Series that is not one of the ``features``.

    >>> align([0.5, 1.5], 2).values.shape
    (2, 1)
    """
    try:
        values = as_outputs(to_rows(outputs, index, "The outputs given in place of a model"), n)
    except ModelError as error:
        raise InputError("The outputs given in place of a model are not usable: ", error.message) from error
    values = values if kept is None else values[kept]
    wrong = _rows_not_finite(values)
    if len(wrong):
        row = int(wrong[0] if kept is None else kept[wrong[0]])
        raise InputError(
            f"The outputs are NaN or infinite in {count_of(len(wrong), 'row')}, the first is row {row}"
            f"{_mask_note(outputs)}; leave these rows out, or give them weight zero."
        )
    matrix = values.reshape(len(values), -1)
    names = _names(output_names, matrix.shape[1], _names_given(outputs, features))
    return ModelValues(matrix, names, values.ndim == 1, np.zeros_like(matrix), 0)


def average(values: FloatArray, group: IntArray, weight: NDArray[Any], n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Weighted mean of ``values`` (n, m) in each group, and the variance inside each group.

    Deviations are taken from the smallest value of each group, so that large offsets do not cancel, equal values
    average to themselves, and the order of the rows does not matter.

    Returns:
        means: (n_groups, m), every group being non-empty.
        within: (n_groups, m), E[(y - E[y|group])^2 | group] under the weights.

    >>> average(np.array([[1.0], [3.0], [7.0]]), np.array([0, 0, 1]), np.array([1, 1, 2]), 2)
    (array([[2.],
           [7.]]), array([[1.],
           [0.]]))
    """
    if n_groups == len(group):
        return values[_first_of_each(group, n_groups)], np.zeros_like(values)
    mass = group_totals(weight, group, n_groups).astype(np.float64)
    lowest = np.full((n_groups, values.shape[1]), np.inf)
    first, second = np.zeros_like(lowest), np.zeros_like(lowest)
    pieces = blocks(len(group), n_groups)
    for k, output in enumerate(values.T):
        for rows in pieces:
            np.minimum.at(lowest[:, k], group[rows], output[rows])
        for rows in pieces:
            own, above = group[rows], output[rows] - lowest[group[rows], k]
            first[:, k] += np.bincount(own, weights=weight[rows] * above, minlength=n_groups)
            second[:, k] += np.bincount(own, weights=weight[rows] * above**2, minlength=n_groups)
    return means_from_sums(mass, lowest, first, second)


def means_from_sums(
    mass: FloatArray, lowest: FloatArray, first: FloatArray, second: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean (r, m) and variance (r, m) in groups of total weight ``mass`` (r,).

    ``first`` and ``second`` (r, m) are the weighted sums of the deviations from ``lowest`` (r, m), the smallest value
    of each group, and of their squares. ``lowest`` and ``second`` become the results.
    """
    for low, one, two in zip(lowest.T, first.T, second.T, strict=True):  # column by column: nothing of size (r, m)
        shift = one / mass
        within = (two - one * shift) / mass
        low += shift
        two[:] = np.where(two > 0.0, np.maximum(within, 0.0), 0.0)
    return lowest, second


def _first_of_each(group: IntArray, n_groups: int) -> IntArray:
    """(n_groups,) the first row of each group."""
    first = np.empty(n_groups, dtype=np.int64)
    for rows in reversed(blocks(len(group))):
        first[group[rows][::-1]] = np.arange(rows.start, rows.stop)[::-1]
    return first


def as_outputs(outputs: Any, n: int) -> FloatArray:
    """Outputs as float64, shape (n,) or (n, m); ``ModelError`` if they are not numbers for each of ``n`` rows.

    Masked entries, and missing ones of nullable arrays, become NaN.
    """
    try:
        array = _without_mask(outputs)
    except Exception as error:
        raise ModelError(f"A {type(outputs).__name__} cannot be read as an array: {error}") from error
    if array.ndim == 0:
        raise ModelError(f"It is of type {type(outputs).__name__}; expected {n} numbers, or {n} rows of them.")
    if array.ndim not in (1, 2):
        raise ModelError(f"The shape is {array.shape}; expected ({n},) or ({n}, number of outputs).")
    if len(array) != n:
        raise ModelError(f"There are {len(array)} rows of outputs for {n} rows; expected one for each row.")
    if array.ndim == 2 and not array.shape[1]:
        raise ModelError("There are no outputs; expected at least one number for each row.")
    return _as_real(array)


def _without_mask(outputs: Any) -> NDArray[Any]:
    """An array with NaN where a masked array has no value: masked values are undefined."""
    if not _is_masked(outputs):
        array = np.asarray(outputs)
        return _without_na(array) if array.dtype.kind == "O" else array
    wide = outputs.astype(np.float64) if outputs.dtype.kind in "biuf" else outputs.astype(object)
    return np.asarray(wide.filled(np.nan))


def _is_masked(outputs: Any) -> bool:
    """Whether it is a masked array of NumPy with a masked entry; arrays of pandas have masks of their own kind."""
    return isinstance(outputs, np.ma.MaskedArray) and bool(np.ma.is_masked(outputs))


def _without_na(array: NDArray[Any]) -> NDArray[Any]:
    """An array of objects with NaN in place of the missing value of nullable columns, unless it has nothing else."""
    missing = np.array([type(cell).__name__ == "NAType" for cell in array.flat], dtype=bool).reshape(array.shape)
    return array if not missing.any() or missing.all() else np.where(missing, np.nan, array)


def _mask_note(outputs: Any) -> str:
    return " (masked entries count as NaN)" if _is_masked(outputs) else ""


def _as_real(array: NDArray[Any]) -> FloatArray:
    if array.dtype.kind == "O" and all(
        isinstance(cell, int | float | np.number | np.bool_ | Decimal) for cell in array.flat
    ):
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        sample = type(array.flat[0]).__name__ if array.size else str(array.dtype)
        raise ModelError(
            f"The values are of type {sample}, not real numbers",
            remedy=[
                "Use class probabilities or scores (",
                Parameter("response_method", "predict_proba"),
                " or ",
                Parameter("response_method", "decision_function"),
                "), or encode labels as numbers, one 0/1 column per class",
            ],
        )
    return array.astype(np.float64)


def _is_estimator(candidate: Any) -> bool:
    return any(hasattr(candidate, method) for method in RESPONSE_METHODS)


def _responder(model: Any, response_method: str) -> Callable[[Any], Any]:
    check_choice("response_method", response_method, ("auto", *RESPONSE_METHODS))
    if isinstance(model, type) or not is_model(model):
        raise InputTypeError(
            f"The model is {model!r}; expected a callable or a fitted estimator, an object and not a class."
        )
    if not _is_estimator(model):
        respond: Callable[[Any], Any] = model
        return respond
    methods = ("predict_proba", "predict") if response_method == "auto" else (response_method,)
    method: Callable[[Any], Any] | None = next((getattr(model, name) for name in methods if hasattr(model, name)), None)
    if method is None:
        raise InputError(
            f"{type(model).__name__} has no {methods[-1]}",
            remedy=[
                "choose another ",
                Parameter("response_method"),
                f" among those it has: {', '.join(name for name in RESPONSE_METHODS if hasattr(model, name))}",
            ],
        )
    return method


def _named_classes(model: Any) -> Callable[[], Any]:
    """The classes of a model, or of that whose method this is; asked for after a call, as some know them only then."""
    is_method = getattr(model, "__name__", "") in ("predict_proba", "decision_function")
    owner = getattr(model, "__self__", model) if is_method else model
    return lambda: getattr(owner, "classes_", None)


def _batches(rows: IntArray, batch_size: int | None) -> Iterator[IntArray]:
    size = len(rows) if batch_size is None else batch_size
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise InputError.given("batch_size", batch_size, "at least one row, or None for all rows at once")
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _respond(
    respond: Callable[[Any], Any], classes: Callable[[], Any], every: bool, table: Table, rows: IntArray
) -> tuple[FloatArray, Sequence[str] | None]:
    """Outputs (k,) or (k, m) on one batch with their natural names; any failure is a ``ModelError`` with its cause."""
    batch = table.rows(rows)
    try:
        outputs = respond(batch.native)
    except ExanovaError:
        raise
    except Exception as error:
        raise ModelError(why_it_failed(error, respond, batch)) from error
    try:
        chosen, natural = class_outputs(to_batch(outputs, batch.index), classes(), every)
        values = as_outputs(chosen, len(rows))
    except ModelError as error:
        raise ModelError("What the model returned is not usable: ", error.message) from (error.__cause__ or error)
    wrong = _rows_not_finite(values)
    if len(wrong):
        raise ModelError(
            f"The model returned NaN or infinity on {len(wrong)} of {len(rows)} rows, the first is row "
            f"{int(rows[wrong[0]])} of the table{_mask_note(outputs)}; effects of such values are undefined."
        )
    return values, own_names(outputs, table.names) if natural is None else natural


def _check_same_width(parts: list[FloatArray]) -> None:
    if parts[-1].shape[1:] != parts[0].shape[1:]:
        raise ModelError(
            f"The model returned the shape {parts[0].shape} on the first batch and {parts[-1].shape} on batch "
            f"{len(parts)}; the number of outputs has to stay the same."
        )


def _rows_not_finite(values: FloatArray) -> IntArray:
    finite = np.isfinite(values)
    return np.flatnonzero(~(finite if values.ndim == 1 else finite.all(axis=1)))


def _names_given(outputs: Any, features: Sequence[str]) -> Any:
    """Names that outputs bring along: those of columns, or of a Series."""
    columns = getattr(outputs, "columns", None)
    return own_names(outputs, features) if columns is None else columns


def _names(given: Sequence[str] | None, width: int, natural: Any) -> tuple[str, ...]:
    """Names of the outputs: those given, else natural ones of the right number, else numbers."""
    if given is not None:
        if not isinstance(given, Iterable):
            raise InputTypeError.given("output_names", given, "one different name per output")
        names = (given,) if isinstance(given, str) else tuple(map(str, given))
        if len(names) != width or len(set(names)) != width:
            raise InputError(
                Parameter("output_names", list(names)),
                f" were given for {count_of(width, 'output')}",
                expected="one different name per output",
            )
        return names
    if natural is not None and len(natural) == width:
        return tuple(map(str, natural))
    return tuple(f"output {k}" for k in range(width))
