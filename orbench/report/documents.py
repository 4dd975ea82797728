"""The grids as Markdown and LaTeX. Names come from users and models: every mark is escaped."""

from collections.abc import Sequence
from pathlib import Path

from orbench.report.tables import DASH, Grid
from orbench.table import write_text

_MARKDOWN = str.maketrans({c: "\\" + c for c in "\\`*_[]|<>#~&$"})
_LATEX = str.maketrans(
    {c: "\\" + c for c in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        "†": r"\dag{}",
        DASH: "--",
    }
)


def write_markdown(path: Path, grids: Sequence[Grid], warnings: Sequence[str]) -> None:
    """results.md. Raises OSError."""
    parts = ["# Results", *(f"**Note:** {markdown(line)}" for line in warnings)]
    for grid in grids:
        rows = [grid.columns, *([cell.text for cell in row] for row in grid.rows)]
        lines = ["| " + " | ".join(map(markdown, row)) + " |" for row in rows]
        lines.insert(1, "|" + " --- |" * len(grid.columns))
        parts += [f"## {markdown(grid.title)}", "\n".join(lines), *map(markdown, grid.notes)]
    write_text(path, "\n\n".join(parts) + "\n")


def write_latex(path: Path, grids: Sequence[Grid], warnings: Sequence[str]) -> None:
    """results.tex, to be \\input; needs the packages booktabs and graphicx. Raises OSError."""
    parts = ["% \\usepackage{booktabs,graphicx} in the preamble"]
    parts += [f"% NOTE: {line}" for line in warnings]
    for grid in grids:
        notes = [note.rstrip(".") for note in (*grid.notes, *warnings)]
        head, *body = [grid.columns, *([cell.text for cell in row] for row in grid.rows)]
        parts += [
            r"\begin{table*}",
            r"\centering\small",
            rf"\caption{{{latex('. '.join([grid.title, *notes]))}.}}",
            rf"\label{{tab:{grid.key.replace('_', '-')}}}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{'l' * len(grid.columns)}}}",
            r"\toprule",
            _latex_row(head),
            r"\midrule",
            *map(_latex_row, body),
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table*}",
            "",
        ]
    write_text(path, "\n".join(parts))


def _latex_row(texts: Sequence[str]) -> str:
    row = " & ".join(map(latex, texts)) + r" \\"
    # Behind the \\ of the row above, these would be read as its argument.
    return "{}" + row if row[0] in "[*" else row


def markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return text.translate(_MARKDOWN)


def latex(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return text.translate(_LATEX)
