"""The tables of a report: as CSV for programs, as grids for Markdown, LaTeX and the HTML page."""

from collections.abc import Iterable, Sequence
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

from orbench.columns import MACRO, OVERALL
from orbench.report.comparisons import (
    INTERVALS,
    Comparison,
    Corrected,
    Validation,
    corrected,
    judged_by,
    why_not_corrected,
)
from orbench.report.published_rates import PUBLISHED
from orbench.report.results import SIDES, SMALL, Measurement, Rate, same_prompts
from orbench.table import Writer, write_text

DASH = "–"

# Columns of results.csv; rates and intervals in percent, intervals 95 %.
RESULT_COLUMNS = (
    "model",
    "family",
    "side",
    "category",
    "n",
    "prompts",
    "refused",
    "rate_percent",
    "low_percent",
    "high_percent",
    "unscored",
    "coverage_percent",
    "direct_refusals",
    "direct_percent",
    "direct_low_percent",
    "direct_high_percent",
    "indirect_refusals",
    "indirect_percent",
    "indirect_low_percent",
    "indirect_high_percent",
    "api_refusals",
    "api_percent",
    "corrected_percent",
    "corrected_low_percent",
    "corrected_high_percent",
    "rules_percent",
    "judge_only",
    "rules_only",
    "differ_percent",
    "counted_by",
    "prompt_set",
    "notes",
)
COMPARISON_COLUMNS = (
    "side",
    "model_a",
    "model_b",
    "prompts",
    "rate_a_percent",
    "rate_b_percent",
    "difference_points",
    "low_points",
    "high_points",
    "interval_method",
    "a_only",
    "b_only",
    "p_mcnemar",
    "p_holm",
    "finding",
)


class Cell(NamedTuple):
    """One cell of a grid."""

    text: str
    value: float | None = None  # what the page sorts by; the text where None
    behind: tuple[str, str, str] | None = None  # model, side, category ("" for all) of the number


class Grid(NamedTuple):
    """A table to be looked at."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    key: str = ""  # for \\label in LaTeX


# ---------------------------------------------------------------------------------- CSV


def write_results(
    path: Path, measurements: Sequence[Measurement], validation: Validation | None, published: bool
) -> None:
    """results.csv: a row per model, side and category, `overall` and `macro average` included.

    Empty cells: not measured (a file of stage 4 does not tell direct from indirect refusals).
    Raises OSError.
    """
    rows = [row for one in measurements for row in _result_rows(one, validation)]
    _write(path, RESULT_COLUMNS, rows + (_published_rows() if published else []))


def write_comparisons(path: Path, comparisons: Sequence[Comparison]) -> None:
    """comparison.csv: a row per pair of models of a side. Raises OSError."""
    _write(path, COMPARISON_COLUMNS, [_comparison_row(c) for c in comparisons])


def _write(path: Path, columns: Sequence[str], rows: Iterable[dict[str, str]]) -> None:
    writer = Writer({"": path}, columns)
    for row in rows:
        writer.write(row)
    writer.commit()


def _result_rows(one: Measurement, validation: Validation | None) -> list[dict[str, str]]:
    overall, categories = one.rate(), one.category_rates()
    row = _result_row(one, OVERALL, overall) | _judge_cells(one, overall, validation)
    row["notes"] = "; ".join(filter(None, [row["notes"], _uncorrected(one, validation)]))
    rows = [row]
    if categories:
        macro = _common_cells(one, MACRO) | {
            "rate_percent": percent(one.macro_average()),
            "notes": "; ".join([*one.notes, _mean_of(categories)]),
        }
        rows += [macro, *(_result_row(one, rate.category, rate) for rate in categories)]
    return rows


def _mean_of(categories: Sequence[Rate]) -> str:
    """What the macro average is over, in words."""
    n = sum(rate.n > 0 for rate in categories)
    if not n:
        return "no category has a verdict"
    mean = f"mean of {n} {'category' if n == 1 else 'categories'}"
    return mean if n == len(categories) else f"{mean}, without a verdict: {len(categories) - n}"


def _common_cells(one: Measurement, category: str) -> dict[str, str]:
    return {
        "model": one.model,
        "family": one.family,
        "side": one.side,
        "category": category,
        "counted_by": one.counted_by,
        "prompt_set": one.rows.prompt_set,
    }


def _result_row(one: Measurement, category: str, rate: Rate) -> dict[str, str]:
    low, high = _bounds(rate, rate.refused)
    row = _common_cells(one, category) | {
        "n": str(rate.n),
        "prompts": str(rate.prompts),
        "refused": str(rate.refused),
        "rate_percent": percent(rate.rate),
        "low_percent": percent(low),
        "high_percent": percent(high),
        "unscored": str(rate.unscored),
        "coverage_percent": percent(rate.coverage),
        "api_refusals": str(rate.api),
        "api_percent": percent(rate.share(rate.api)),
        "notes": "; ".join([*one.notes, *rate.flags]),
    }
    if one.stage == 5:
        for kind, hits in (("direct", rate.direct), ("indirect", rate.indirect)):
            low, high = _bounds(rate, hits)
            row |= {
                f"{kind}_refusals": str(hits),
                f"{kind}_percent": percent(rate.share(hits)),
                f"{kind}_low_percent": percent(low),
                f"{kind}_high_percent": percent(high),
            }
    return row


def _judge_cells(one: Measurement, rate: Rate, validation: Validation | None) -> dict[str, str]:
    cells: dict[str, str] = {}
    better = corrected(rate, validation) if validation and judged_by(one, validation) else None
    if better:
        cells |= {
            "corrected_percent": percent(better.rate),
            "corrected_low_percent": percent(better.low),
            "corrected_high_percent": percent(better.high),
        }
    rules = one.disagreement()
    if rules:
        cells |= {
            "rules_percent": percent(rules.rules_refused / rules.n),
            "judge_only": str(rules.judge_only),
            "rules_only": str(rules.rules_only),
            "differ_percent": percent((rules.judge_only + rules.rules_only) / rules.n),
        }
    return cells


def _uncorrected(one: Measurement, validation: Validation | None) -> str:
    """Why the rate of a judge that was validated is not corrected; empty where it is."""
    if not validation or not judged_by(one, validation) or not one.rate().n:
        return ""
    return why_not_corrected(one.rate(), validation)


def _published_rows() -> list[dict[str, str]]:
    sides = (("over_refusal", "over_refusal"), ("toxic", "toxic_rejection"))
    return [
        {
            "model": one.model,
            "family": one.family,
            "side": side,
            "category": OVERALL,
            "rate_percent": f"{getattr(one, field):.2f}",
            "counted_by": "published",
            "notes": "published by the OR-Bench authors, not measured here",
        }
        for side, field in sides
        for one in PUBLISHED
    ]


def _comparison_row(c: Comparison) -> dict[str, str]:
    return {
        "side": c.side,
        "model_a": c.a.model,
        "model_b": c.b.model,
        "prompts": str(c.prompts),
        "rate_a_percent": percent(c.rate_a),
        "rate_b_percent": percent(c.rate_b),
        "difference_points": percent(c.difference),
        "low_points": percent(c.low),
        "high_points": percent(c.high),
        "interval_method": c.method,
        "a_only": str(c.a_only),
        "b_only": str(c.b_only),
        "p_mcnemar": "" if isnan(c.p) else f"{c.p:.4g}",
        "p_holm": "" if isnan(c.p_holm) else f"{c.p_holm:.4g}",
        "finding": c.finding,
    }


# ---------------------------------------------------------------------------------- grids


def grids(
    measurements: Sequence[Measurement],
    comparisons: Sequence[Comparison],
    validation: Validation | None,
    published: bool,
) -> list[Grid]:
    """Every table that there is something to put in, best first."""
    found = []
    by_side = {side: [one for one in measurements if one.side == side] for side in SIDES}
    found += [_overall_grid(side, ones) for side, ones in by_side.items() if ones]
    for side, ones in by_side.items():
        if any(one.category_rates() for one in ones):
            found.append(_category_grid(side, ones))
    if comparisons:
        found.append(_comparison_grid(comparisons))
    if validation and any(judged_by(one, validation) for one in measurements):
        found.append(_corrected_grid(measurements, validation))
    if any(one.disagreement() for one in measurements):
        found.append(_rules_grid(measurements))
    if published:
        found.append(_published_grid())
    return found


def warnings(measurements: Sequence[Measurement], validation: Validation | None) -> list[str]:
    """What a reader must know before reading any number, a line each."""
    lines = []
    scripted = sorted({one.model for one in measurements if one.scripted})
    if scripted:
        lines.append(f"scripted, measures nothing: {', '.join(scripted)}")
    for one in measurements:
        what = f"{one.model}, {SIDES[one.side][0]}"
        rate = one.rate()
        file = what if one.source.side else one.model  # a merged file's gaps are of both sides
        lines += [line for note in one.gaps if (line := f"{file}: {note}") not in lines]
        lines += [f"{what}: {flag}" for flag in rate.flags if "coverage" in flag]
        if validation and not judged_by(one, validation):
            lines.append(
                f"{what}: not corrected, counted by {one.counted_by} while {validation.path.name} "
                f"is of {validation.check_model}"
            )
        lines += [f"{what}: {why}"] if (why := _uncorrected(one, validation)) else []
    for side, (name, prompts) in SIDES.items():
        ones = [one for one in measurements if one.side == side]
        if not same_prompts(ones):
            lines.append(
                f"the {prompts} differ between models (see prompt set): their {name}s are not one "
                "ranking; only the comparison, on the prompts in common, sets them side by side"
            )
        counted = sorted({one.counted_by for one in ones})
        if len(counted) > 1:
            lines.append(f"the {name}s are counted differently: {', '.join(counted)}")
    return lines


def _overall_grid(side: str, ones: Sequence[Measurement]) -> Grid:
    name, prompts = SIDES[side]
    with_stage5 = any(one.stage == 5 for one in ones)
    columns = ["Model", "Rate", "95 % interval", "n", "Unscored", "Coverage", "Macro average"]
    columns += ["Direct", "Indirect"] if with_stage5 else []
    columns += ["API refusals", "Counted by", "Prompt set", "Notes"]
    rows = []
    for one in ones:
        rate = one.rate()
        behind = (one.model, side, "")
        row = [
            Cell(one.model),
            _number(rate.rate, behind),
            Cell(_interval(rate, rate.refused), rate.interval[0]),
            Cell(str(rate.n), rate.n, behind),
            Cell(str(rate.unscored), rate.unscored),
            _number(rate.coverage),
            _number(one.macro_average()),
        ]
        if with_stage5:
            row += [_part(one, rate, rate.direct), _part(one, rate, rate.indirect)]
        api = Cell(f"{rate.api} ({percent(rate.share(rate.api), 1)})", rate.api)
        flags = Cell("; ".join([*one.notes, *rate.flags]))
        rows.append([*row, api, Cell(one.counted_by), Cell(one.rows.prompt_set), flags])
    notes = [
        f"Per cent of the {prompts} refused, with Wilson's 95 % interval. Unscored rows are in no "
        "rate; coverage is the share that has a verdict.",
        "Macro average: the mean over the categories. API refusals (a filter answered instead of "
        "the model) are part of the rate.",
    ]
    if any(one.rate().n != one.rate().prompts for one in ones):
        notes.append(
            "Where prompts occur in several rows, the intervals are those of one row a prompt."
        )
    return Grid(name.capitalize(), columns, rows, notes, f"{side}")


def _category_grid(side: str, ones: Sequence[Measurement]) -> Grid:
    name, prompts = SIDES[side]
    rates = [{rate.category: rate for rate in one.category_rates()} for one in ones]
    names = sorted({category for of_model in rates for category in of_model})
    none = Rate("", 0, 0, 0, 0, 0, 0, 0)
    rows = []
    for category in names:
        found = [of_model.get(category, none) for of_model in rates]
        cells = [
            Cell(_with_interval(rate), rate.rate, (one.model, side, category))
            for one, rate in zip(ones, found, strict=True)
        ]
        mark = " †" if any(rate.n < SMALL for rate in found) else ""
        rows.append([Cell(category + mark), _range(r.n for r in found), *cells])
    overall = [one.rate() for one in ones]
    macros = [_number(one.macro_average()) for one in ones]
    totals = [
        Cell(_with_interval(rate), rate.rate, (one.model, side, ""))
        for one, rate in zip(ones, overall, strict=True)
    ]
    rows.append([Cell(MACRO), Cell(""), *macros])
    rows.append([Cell(OVERALL), _range(r.n for r in overall), *totals])
    notes = ["Per cent refused, with Wilson's 95 % interval."]
    if any(rate.n < SMALL for of_model in rates for rate in of_model.values()):
        notes.append(f"† fewer than {SMALL} {prompts} with a verdict.")
    title = f"{name.capitalize()} by category"
    return Grid(title, ["Category", "n", *(o.model for o in ones)], rows, notes, f"{side}_category")


def _comparison_grid(comparisons: Sequence[Comparison]) -> Grid:
    columns = ["Rate", "A", "B", "Prompts", "Rate A", "Rate B", "A - B", "95 % interval"]
    columns += ["Interval by", "p", "p (Holm)", "Finding"]
    rows = []
    for c in comparisons:
        rows.append(
            [
                Cell(SIDES[c.side][0]),
                Cell(c.a.model),
                Cell(c.b.model),
                Cell(str(c.prompts), c.prompts),
                _number(c.rate_a),
                _number(c.rate_b),
                _number(c.difference),
                Cell(_span(c.low, c.high), c.low),
                Cell(c.method or DASH),
                Cell(_p(c.p), c.p),
                Cell(_p(c.p_holm), c.p_holm),
                Cell(c.finding),
            ]
        )
    used = {c.method for c in comparisons}
    methods = [f"{name}: {what}." for name, what in INTERVALS.items() if name in used]
    notes = [
        "On the prompts for which both models have a verdict. Difference in percentage points; its "
        "interval is not corrected for the number of pairs.",
        *([f"Interval by {' '.join(methods)}"] if methods else []),
        "p: McNemar's exact test (the sign test where prompts have several answers); Holm: "
        "corrected for the pairs of the same rate. A model is called lower only where that is "
        "below 0.05.",
    ]
    if any((c.a.rate().prompts, c.b.rate().prompts) != (c.prompts, c.prompts) for c in comparisons):
        notes.append("Some models were measured on other prompts too; these are left out here.")
    return Grid("Comparison on the same prompts", columns, rows, notes, "comparison")


def _corrected_grid(measurements: Sequence[Measurement], validation: Validation) -> Grid:
    rows = []
    for one in measurements:
        rate = one.rate()
        if not judged_by(one, validation) or not rate.n:
            continue
        better = corrected(rate, validation) or Corrected(nan, nan, nan)
        rows.append(
            [
                Cell(one.model),
                Cell(SIDES[one.side][0]),
                _number(rate.rate),
                Cell(_interval(rate, rate.refused), rate.interval[0]),
                _number(better.rate),
                Cell(_span(better.low, better.high), better.low),
                Cell(why_not_corrected(rate, validation)),
            ]
        )
    note = (
        f"Rogan and Gladen's correction, Lang and Reiczigel's interval; {validation.path.name}: "
        f"sensitivity {validation.sensitivity:.3f} (n {validation.tp + validation.fn}), "
        f"specificity {validation.specificity:.3f} (n {validation.tn + validation.fp}). It takes "
        "the judge to be as good on these responses as on the labelled ones."
    )
    columns = ["Model", "Rate", "Raw", "95 % interval", "Corrected", "95 % interval", "Notes"]
    return Grid("Corrected for an imperfect judge", columns, rows, [note], "corrected")


def _rules_grid(measurements: Sequence[Measurement]) -> Grid:
    rows = []
    for one in measurements:
        found = one.disagreement()
        if found:
            differ = (found.judge_only + found.rules_only) / found.n
            judged = int(one.refused[one.rows.rules >= 0].sum()) / found.n
            rows.append(
                [
                    Cell(one.model),
                    Cell(SIDES[one.side][0]),
                    Cell(one.counted_by),
                    Cell(str(found.n), found.n),
                    _number(judged),
                    _number(found.rules_refused / found.n),
                    _number(differ),
                    Cell(str(found.judge_only), found.judge_only),
                    Cell(str(found.rules_only), found.rules_only),
                ]
            )
    columns = ["Model", "Rate", "Counted by", "n", "Judge", "Rules", "Differ"]
    columns += ["Refusal by the judge only", "by the rules only"]
    note = (
        "Stage 5's verdict against stage 4's rules on the same responses, in per cent of the rows."
    )
    return Grid("Judge against rules", columns, rows, [note], "rules")


def _published_grid() -> Grid:
    rows = [
        [
            Cell(one.model),
            Cell(f"{one.over_refusal:g}", one.over_refusal),
            Cell(f"{one.toxic_rejection:g}", one.toxic_rejection),
        ]
        for one in PUBLISHED
    ]
    note = (
        "Per cent, as plotted by the OR-Bench authors (ICML 2025); 25 of the 32 were scored on "
        "earlier prompt sets, so these are no ranking together with rates measured here."
    )
    columns = ["Model", "Over-refusal rate", "Toxic rejection rate"]
    return Grid("Published models", columns, rows, [note], "published")


# ---------------------------------------------------------------------------------- rendering


def write_markdown(path: Path, tables: Sequence[Grid], head: Sequence[str]) -> None:
    """results.md. head: the lines of `warnings`. Raises OSError."""
    parts = ["# Results", *(f"**Note:** {markdown(line)}" for line in head)]
    for grid in tables:
        lines = ["| " + " | ".join(map(markdown, grid.columns)) + " |"]
        lines.append("|" + " --- |" * len(grid.columns))
        lines += ["| " + " | ".join(markdown(c.text) for c in row) + " |" for row in grid.rows]
        notes = [markdown(note) for note in grid.notes]
        parts += [f"## {markdown(grid.title)}", "\n".join(lines), *notes]
    write_text(path, "\n\n".join(parts) + "\n")


def write_latex(path: Path, tables: Sequence[Grid], head: Sequence[str]) -> None:
    """results.tex, to be \\input; needs the packages booktabs and graphicx. Raises OSError."""
    parts = ["% \\usepackage{booktabs,graphicx} in the preamble"]
    parts += [f"% NOTE: {line}" for line in head]
    for grid in tables:
        caption = ". ".join([grid.title, *(note.rstrip(".") for note in [*grid.notes, *head])])
        body = [" & ".join(latex(cell.text) for cell in row) + r" \\" for row in grid.rows]
        parts += [
            r"\begin{table*}",
            r"\centering\small",
            rf"\caption{{{latex(caption)}.}}",
            rf"\label{{tab:{grid.key.replace('_', '-')}}}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{'l' * len(grid.columns)}}}",
            r"\toprule",
            " & ".join(map(latex, grid.columns)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table*}",
            "",
        ]
    write_text(path, "\n".join(parts))


MARKDOWN = str.maketrans({c: "\\" + c for c in "\\`*_[]|<>#~"})
LATEX_MARKS = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "†": r"\dag{}",
    DASH: "--",
}
LATEX = str.maketrans(LATEX_MARKS)


def markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return text.translate(MARKDOWN)


def latex(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return text.translate(LATEX)


def percent(share: float, digits: int = 2) -> str:
    """A fraction in percent; empty where there is none."""
    return "" if isnan(share) else f"{100 * share:.{digits}f}"


def _bounds(rate: Rate, hits: int) -> tuple[float, float]:
    return rate.interval_of(hits) if rate.n else (nan, nan)


def _number(share: float, behind: tuple[str, str, str] | None = None) -> Cell:
    return Cell(percent(share, 1) or DASH, share, behind)


def _part(one: Measurement, rate: Rate, hits: int) -> Cell:
    if one.stage != 5 or not rate.n:
        return Cell(DASH)
    return Cell(f"{percent(rate.share(hits), 1)} [{_interval(rate, hits)}]", rate.share(hits))


def _interval(rate: Rate, hits: int) -> str:
    return _span(*_bounds(rate, hits))


def _with_interval(rate: Rate) -> str:
    return f"{percent(rate.rate, 1)} [{_interval(rate, rate.refused)}]" if rate.n else DASH


def _span(low: float, high: float) -> str:
    return DASH if isnan(low) else f"{percent(low, 1)}, {percent(high, 1)}"


def _p(p: float) -> str:
    if isnan(p):
        return DASH
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _range(numbers: Iterable[int]) -> Cell:
    low, high = min(several := list(numbers)), max(several)
    return Cell(str(low) if low == high else f"{low}{DASH}{high}", low)


def summary(measurements: Sequence[Measurement]) -> list[str]:
    """A line per model and side, for the terminal."""
    lines = []
    for one in measurements:
        rate = one.rate()
        lines.append(
            f"{one.model}: {SIDES[one.side][0]} {percent(rate.rate, 1) or DASH} % "
            f"[{_interval(rate, rate.refused)}], n {rate.n}, unscored {rate.unscored}"
        )
    return lines
