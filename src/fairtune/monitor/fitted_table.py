"""Tables of a live view: one line for each row whatever the names are, columns that give way where there is little room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

from fairtune.core.numbers import DASH
from fairtune.core.printable import printable

GAP = 2
"""Cells between columns."""
READABLE = 20
"""Cells that names keep where less important columns can give way."""
HEADING = "bold"
MORE = "dim"


@dataclass(frozen=True)
class FittedColumn:
    """A column.

    Args:
        cells: one for each row; a column that says nothing in any row is left out.
        order: which columns give way first where there is little room: the highest; 0 never does.
        least: cells that it may be shortened to; None where half of it would say something else.
        middle: it is shortened in the middle, as names are, which often differ only at their end.
        styles: of the cells; none, if absent.
    """

    title: str
    cells: Sequence[str]
    order: int = 0
    least: int | None = None
    right: bool = False
    middle: bool = False
    styles: Sequence[str] = ()


@dataclass(frozen=True)
class FittedTable:
    """A table, of which as many rows are shown as there is room for.

    Args:
        columns: the title of the first one is what the rows are.
        count: rows in all, of which only some may have been given.
        least: lines that it has before other sections have more than theirs.
        ranks: the rows by importance, where that is another order than they are shown in.
        counted: say how many rows are not shown.
    """

    columns: Sequence[FittedColumn]
    count: int
    least: int
    ranks: Sequence[int] = ()
    counted: bool = True

    @property
    def given(self) -> int:
        return len(self.columns[0].cells)

    @property
    def wanted(self) -> int:
        """Lines, if all is shown."""
        return 1 + self.given + (self.counted and self.count > self.given)

    def lines(self, width: int, room: int, whole: bool = False) -> list[Text]:
        """The heading, rows, and how many more there are, in so many lines.

        Args:
            whole: the last column may go on below, where it can be shortened, and takes more lines then.
        """
        shown = self.given if room >= self.wanted else max(0, room - 1 - self.counted)
        ranks = self.ranks or range(self.given)
        rows = sorted(ranks[:shown])
        lines = table_lines([_rows_of(column, rows) for column in self.columns], width, whole)
        if self.counted and shown < self.count:
            more = f"and {self.count - shown:,} more" if shown else f"{self.count:,} in all"
            lines.append(Text(shortened(f"  {more}", width), MORE, no_wrap=True))
        return lines


def _rows_of(column: FittedColumn, rows: Iterable[int]) -> FittedColumn:
    rows = list(rows)
    styles = [column.styles[row] for row in rows] if column.styles else ()
    return replace(column, cells=[column.cells[row] for row in rows], styles=styles)


def share_lines(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Lines for each section: first what each needs to say anything, in their order, then more for all in turn."""
    given = []
    for lines, needed in zip(wanted, least, strict=True):
        share = min(lines, needed, room)
        given.append(share if share > 1 else 0)  # a heading alone says nothing
        room -= given[-1]
    while room > 0 and (short := [place for place, lines in enumerate(wanted) if 0 < given[place] < lines]):
        for place in short[:room]:
            given[place] += 1
            room -= 1
    return given


def table_lines(columns: Sequence[FittedColumn], width: int, whole: bool = False) -> list[Text]:
    """A heading and a line for each row, none of them wider than there is room; with `whole`, more for its last column."""
    fitted = _fitted([_written(column) for column in columns], width)
    lines = [_line([(column.title, HEADING) for column, _ in fitted], fitted, width)]
    last, last_width = fitted[-1]
    for row in range(len(columns[0].cells)):
        cells = [(column.cells[row], column.styles[row] if column.styles else "") for column, _ in fitted]
        below = wrapped(cells[-1][0], last_width) if whole and last.least and not last.middle else []
        if len(below) > 1:
            cells[-1] = (below[0], cells[-1][1])
        lines.append(_line(cells, fitted, width))
        indent = " " * (_total([wide for _, wide in fitted]) - last_width)
        lines += [Text(f"{indent}{text}", cells[-1][1], no_wrap=True) for text in below[1:]]
    return lines


def _written(column: FittedColumn) -> FittedColumn:
    return replace(column, cells=[printable(cell) for cell in column.cells])


def _fitted(columns: Sequence[FittedColumn], width: int) -> list[tuple[FittedColumn, int]]:
    """The columns that there is room for, each with its width."""
    first, *others = columns
    kept = [first, *(column for column in others if any(cell not in ("", DASH) for cell in column.cells))]
    for most, readable in ((1, READABLE), (0, 0)):  # names are cut down only for what counts most
        while _total(_smallest(kept, readable)) > width and (last := max(kept, key=_order)).order > most:
            kept.remove(last)
    wide = [max(map(cell_len, (column.title, *column.cells))) for column in kept]
    small = _smallest(kept)
    while (over := _total(wide) - width) > 0:
        widest = max(range(len(kept)), key=lambda place: wide[place] - small[place])
        spare = wide[widest] - small[widest]
        if spare <= 0:
            break  # the lines are cut at the edge
        wide[widest] -= min(over, max(1, spare // 2))
    return list(zip(kept, wide, strict=True))


def _order(column: FittedColumn) -> int:
    return column.order


def _smallest(columns: Sequence[FittedColumn], readable: int = 0) -> list[int]:
    """The least width of each column; of names, no less than can be read well."""
    widths = [max(map(cell_len, (column.title, *column.cells))) for column in columns]
    return [
        wide if column.least is None else min(wide, max(column.least, readable * column.middle))
        for wide, column in zip(widths, columns, strict=True)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _line(cells: Sequence[tuple[str, str]], fitted: Sequence[tuple[FittedColumn, int]], width: int) -> Text:
    line = Text(no_wrap=True, end="")
    for place, ((text, style), (column, cell_width)) in enumerate(zip(cells, fitted, strict=True)):
        short = shortened(text, cell_width, column.middle)
        space = " " * (cell_width - cell_len(short))
        line.append(" " * GAP if place else "")
        line.append(f"{space}{short}" if column.right else f"{short}{space}", style)
    line.rstrip()
    line.truncate(width, overflow="ellipsis")
    line.end = "\n"
    return line


def shortened(text: str, width: int, middle: bool = False) -> str:
    """A text of at most so many cells.

    Args:
        middle: leave out its middle rather than its end.
    """
    text = printable(text)
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    tail, room = "", (width - 1) // 2 if middle else 0
    for letter in reversed(text[-width:]):
        if cell_len(letter + tail) > room:
            break
        tail = letter + tail
    head = set_cell_size(text, width - 1 - cell_len(tail)).rstrip()
    made = f"{head}…{tail}"
    return made if cell_len(made) <= width else set_cell_size(made, width).rstrip()


def wrapped(text: str, width: int, most: int = 1000) -> list[str]:
    """A text in lines of at most so many cells; what is beyond the last line is left out."""
    lines: list[str] = []
    for word in printable(text).split():
        for piece in chop_cells(word, width) if cell_len(word) > width else [word]:
            if lines and cell_len(lines[-1]) + 1 + cell_len(piece) <= width:
                lines[-1] += f" {piece}"
            else:
                lines.append(piece)
    if len(lines) > most:
        lines[most - 1] = shortened(f"{lines[most - 1]} {lines[most]}…", width)
    return lines[:most]
