"""Rows of text -> a table as Markdown and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

# A backslash first, or it would escape the escapes.
_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}


@dataclass(frozen=True)
class Table:
    """A table to print.

    Parameters
    ----------
    title : str
        What it shows.
    columns : sequence of str
        Headings.
    rows : sequence of sequences of str
        Cells, a heading each.
    notes : sequence of str, default=()
        Sentences below the table.
    left : int, default=1
        How many of the first columns are text, set to the left; numbers go to the right.

    Examples
    --------
    >>> print(Table("Wins", ["setting", "wins"], [["p=1", "61"]]).markdown())
    **Wins**
    <BLANKLINE>
    | setting | wins |
    |:--|--:|
    | p=1 | 61 |
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default=())
    left: int = 1

    def markdown(self) -> str:
        """The table as Markdown."""
        rule = ":--|" * self.left + "--:|" * (len(self.columns) - self.left)
        lines = [f"**{self.title}**", "", _row(self.columns), f"|{rule}", *map(_row, self.rows)]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines)

    def latex(self) -> str:
        """The table as LaTeX; needs the package booktabs."""
        layout = "l" * self.left + "r" * (len(self.columns) - self.left)
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escaped(self.title)}}}",
            rf"\begin{{tabular}}{{{layout}}}",
            r"\toprule",
            _latex_row(self.columns),
            r"\midrule",
            *map(_latex_row, self.rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        lines += [rf"\par\smallskip {_escaped(note)}" for note in self.notes]
        return "\n".join([*lines, r"\end{table}"])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_escaped, cells)) + r" \\"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)
