"""The commands that decompose a model, with their options and help; ``fit_commands.py`` runs them."""

from __future__ import annotations

import typer

from exanova.cli import arguments as a

EXPLAIN = a.text(
    "Decompose a model over a table: effects, certificate, report.",
    """[bold]Features[/bold] are all columns not named by --prediction, --weight, --clusters, --strata or --ignore, or
    the features that the model names itself. In CSV, a column of numbers is read as numbers unless a cell looks like a
    code (007). An empty cell is a missing value, which is a level of its own; NA is text, except in a column of
    numbers. Use --text and --missing to change this. Numbers with more than 20 different values are binned
    (--n-bins).""",
    """[bold]The model[/bold] is called once on each distinct row, and on a few again. ONNX: one input per column, or
    one tensor with the columns in the order of the features; missing text becomes an empty string. Python function or
    estimator: a pandas dataframe if pandas is installed, otherwise a pyarrow table; an estimator fitted on arrays gets
    an array. For a classifier, its probabilities are explained.""",
)
EXPLAIN_EXAMPLES = (
    ("Predictions in a column", "exanova explain data.csv --prediction p --report report.html"),
    (
        "One prediction per class, with weights and a column to leave out",
        "exanova explain data.csv --prediction low --prediction high --weight w --ignore id",
    ),
    ("An ONNX model, with the table from standard input", "zcat data.csv.gz | exanova explain - --model model.onnx"),
    (
        "A function of a dataframe, in score.py in this folder",
        "exanova explain data.csv --ignore id --model score:predict",
    ),
    (
        "A scikit-learn model from a file that you trust",
        "exanova explain data.csv --model model.joblib --trust-pickle",
    ),
    (
        "Hundreds of features: a budget, measured on a fifth of the rows",
        "exanova explain wide.parquet --prediction p --max-terms 2000 --eval 0.2",
    ),
)

PLAN = a.text(
    "Estimate the functions, memory and time that explain would need.", "Nothing is fitted and no model is called."
)
PLAN_EXAMPLES = (
    ("Is order 3 feasible?", "exanova plan data.csv --prediction p --max-order 3"),
    ("And with a budget?", "exanova plan data.csv --prediction p --max-order 3 --max-terms 2000"),
)

DEMO = a.text(
    "Run a demo: tic-tac-toe, from the rules of the game to a report in demo/.",
    "A classifier learns which end positions x has won; its effects recover the lines of the game.",
)
DEMO_EXAMPLES = (("Run it", "exanova demo"),)


def explain(
    context: typer.Context,
    data: a.Data,
    prediction: a.Prediction = None,
    weight: a.Weight = None,
    weights: a.WeightsAre = "auto",
    clusters: a.Clusters = None,
    strata: a.Strata = None,
    features: a.Features = None,
    ignore: a.Ignore = None,
    model: a.ModelToAsk = None,
    trust_pickle: a.TrustPickle = False,
    output_names: a.OutputNames = None,
    max_order: a.MaxOrder = "2",
    subsets: a.Subsets = None,
    interactions: a.FormerSubsets = None,
    max_terms: a.MaxTerms = None,
    selection: a.Selection = None,
    n_bins: a.NBins = None,
    strategy: a.Strategy = "quantile",
    min_frequency: a.MinFrequency = None,
    max_levels: a.MaxLevels = None,
    shrinkage: a.Shrinkage = "auto",
    sampled: a.Sampled = None,
    link: a.Link = "identity",
    ties: a.Ties = "share",
    basis: a.Basis = "pure",
    route: a.Route = "auto",
    eval_: a.Eval = None,
    dask: a.Dask = None,
    memory_limit: a.MemoryLimit = None,
    n_jobs: a.Jobs = None,
    format_: a.Format = None,
    separator: a.Separator = None,
    decimal: a.Decimal = ".",
    missing: a.Missing = None,
    text: a.AsText = None,
    categories: a.Categories = None,
    report: a.Report = None,
    save: a.Save = None,
    covariances: a.Covariances = None,
    title: a.Title = None,
    effects: a.Effects = 10,
    force: a.Force = False,
    json: a.Json = False,
    quiet: a.Quiet = False,
    debug: a.Debug = False,
) -> None:
    """Decompose a model over a table."""
    from exanova.cli import fit_commands as commands
    from exanova.cli.columns import Choice

    commands.explain(
        commands.Job(
            data=data,
            reading=a.reading(format_, separator, decimal, missing, text, categories),
            choice=Choice(a.every(features), a.every(ignore), a.every(prediction), weight, clusters, strata),
            fit=commands.FitOptions.typed(context.params, verbose=False if quiet else None),
            model=model,
            trust_pickle=trust_pickle,
            output_names=output_names,
            eval=eval_,
            report=report,
            save=save,
            covariances=covariances,
            title=title,
            force=force,
            json=json,
            quiet=quiet,
            effects=effects,
            words=context.obj,
            dask=dask,
            weights=weights,
        )
    )


def plan(
    context: typer.Context,
    data: a.Data,
    prediction: a.Prediction = None,
    weight: a.Weight = None,
    features: a.Features = None,
    ignore: a.Ignore = None,
    max_order: a.MaxOrder = "2",
    subsets: a.Subsets = None,
    interactions: a.FormerSubsets = None,
    max_terms: a.MaxTerms = None,
    selection: a.Selection = None,
    n_bins: a.NBins = None,
    strategy: a.Strategy = "quantile",
    min_frequency: a.MinFrequency = None,
    max_levels: a.MaxLevels = None,
    shrinkage: a.Shrinkage = "auto",
    sampled: a.Sampled = None,
    ties: a.Ties = "share",
    basis: a.Basis = "pure",
    route: a.Route = "auto",
    memory_limit: a.MemoryLimit = None,
    n_jobs: a.Jobs = None,
    format_: a.Format = None,
    separator: a.Separator = None,
    decimal: a.Decimal = ".",
    missing: a.Missing = None,
    text: a.AsText = None,
    json: a.Json = False,
    debug: a.Debug = False,
) -> None:
    """Estimate what ``explain`` would need."""
    from exanova.cli import fit_commands as commands
    from exanova.cli.columns import Choice

    commands.plan(
        data,
        a.reading(format_, separator, decimal, missing, text),
        Choice(a.every(features), a.every(ignore), a.every(prediction), weight),
        commands.FitOptions.typed(context.params),
        json,
    )


def demo(debug: a.Debug = False) -> None:
    """Run the demo."""
    from exanova.demo import main

    main()


COMMANDS = (
    (explain, EXPLAIN, EXPLAIN_EXAMPLES),
    (plan, PLAN, PLAN_EXAMPLES),
    (demo, DEMO, DEMO_EXAMPLES),
)
"""The commands with their help and examples."""
