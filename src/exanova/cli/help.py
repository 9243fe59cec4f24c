"""What the help of each command says below its usage, and the examples at its end."""

from __future__ import annotations


def _text(*paragraphs: str) -> str:
    """Paragraphs without line ends of their own, so that they are wrapped to the width of the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _examples(*pairs: tuple[str, str]) -> str:
    """What each command is good for, and the command."""
    return "[bold]Examples[/bold]\n\n" + "\n\n".join(f"{why}\n  [cyan]{command}[/cyan]" for why, command in pairs)


EXANOVA = _text(
    "The exact functional ANOVA of any model with categorical inputs.",
    """The model is written as a sum of effects, one for each subset of features, each orthogonal to every function of
    fewer of its features under the joint distribution of the data, whichever combinations never occur.""",
)
EXANOVA_EXAMPLES = (
    _examples(
        (
            "Predictions in a column: a report for the browser, a file for the other commands",
            "exanova explain data.csv --prediction p --report report.html --save model.exanova",
        ),
        ("A model instead of predictions", "exanova explain data.parquet --model model.onnx --report report.html"),
        ("Shapley values of new rows", "exanova rows model.exanova new.csv --output values.csv"),
        ("A first look, without data", "exanova demo"),
    )
    + "\n\nExit code: 0 done, 2 an error (one line on standard error), 130 interrupted."
)

EXPLAIN = _text(
    "Decompose a model over a table: effects, certificate, report.",
    """[bold]What is a feature.[/bold] Every column that is not a prediction, the weight or ignored; a model that knows
    the names of its features chooses them itself. In CSV a column of numbers is read as numbers, unless one is written
    like a code (007); an empty cell is missing, which is a level of its own; NA is text, except between numbers.
    --text and --missing say otherwise. Numbers with more than 20 different values are binned; see
    --n-bins.""",
    """[bold]What a model receives.[/bold] Each distinct row once. ONNX: an input for each column, or one tensor with
    all of them in the order of the features; a missing text is empty. A function or an estimator: a pandas dataframe if
    pandas is installed, else a pyarrow table; an estimator fitted on arrays gets an array. Of a classifier the
    probabilities are explained.""",
)
EXPLAIN_EXAMPLES = _examples(
    ("Predictions in a column", "exanova explain data.csv --prediction p --report report.html"),
    (
        "One column a class, weights, columns that are no features",
        "exanova explain data.csv --prediction low --prediction high --weight w --ignore id",
    ),
    ("An ONNX model, rows from standard input", "zcat data.csv.gz | exanova explain - --model model.onnx"),
    (
        "A function that takes a dataframe, in score.py in this folder",
        "exanova explain data.csv --ignore id --model score:predict",
    ),
    (
        "A scikit-learn model, if you trust who made the file",
        "exanova explain data.csv --model model.joblib --trust-pickle",
    ),
    (
        "Hundreds of features: a budget, judged on a fifth of the rows",
        "exanova explain wide.parquet --prediction p --max-terms 2000 --eval 0.2",
    ),
)

ROWS = _text(
    "Explain new rows with a saved decomposition: Shapley values or interactions.",
    """Shapley values: one line for each row, with base_value, a column for each feature, and prediction, their sum,
    which is the fitted part; with several outputs the columns are called output:feature. Other indices: one line for
    each row and subset. Columns are found by name, further ones are left aside. In a row marked outside_support some
    combination of levels never occurred, and its effect counts as 0.""",
)
ROWS_EXAMPLES = _examples(
    ("Shapley values, one column a feature", "exanova rows model.exanova new.csv --output values.csv"),
    (
        "Interactions of pairs, one line for each row and subset",
        "exanova rows model.exanova new.parquet --index k-SII --output pairs.parquet",
    ),
    ("In a pipe", "cat new.csv | exanova rows model.exanova - | head"),
)

SHOW = "Show a saved decomposition: summary, certificate, strongest effects."
SHOW_EXAMPLES = _examples(
    ("Summary, certificate, strongest effects", "exanova show model.exanova"),
    ("Two effects, level by level", "exanova show model.exanova --effect odor --effect odor:habitat"),
    ("The report, later", "exanova show model.exanova --report report.html"),
)

COMPARE = "Compare two saved decompositions of the same columns: what changed, the most first."
COMPARE_EXAMPLES = _examples(
    ("Two models on the same columns, or one in two periods", "exanova compare before.exanova after.exanova"),
)

PLAN = "Say what explain would take: rows, functions, memory, time. Runs nothing, asks no model."
PLAN_EXAMPLES = _examples(
    ("Is order 3 within reach?", "exanova plan data.csv --prediction p --max-order 3"),
    ("And with a budget?", "exanova plan data.csv --prediction p --max-order 3 --max-terms 2000"),
)

DEMO = "See it work: tic-tac-toe, a classifier of its end positions, its effects and a report in demo/."
DEMO_EXAMPLES = _examples(("All of it", "exanova demo"))
