"""The table of docs/mjcf.md: `PYTHONPATH=src:tests python -m load.mjcf_page` writes it."""

from __future__ import annotations

from pathlib import Path

from hinge.load.mjcf_table import SKIPPED, TABLE, Row

PAGE = Path(__file__).parents[2] / "docs" / "mjcf.md"
START, END = "<!-- the table -->\n", "<!-- the end of the table -->\n"


def table() -> str:
    """The rows, elements of the same row together."""
    same: dict[int, tuple[list[str], Row]] = {}
    for name, row in TABLE.items():
        same.setdefault(id(row), ([], row))[0].append(name)
    lines = [
        "| element | read | named in a warning | MuJoCo's solver | no effect |",
        "|---|---|---|---|---|",
    ]
    for names, row in same.values():
        if row.all != {"*"}:
            lines.append(f"| {_code(names)} | {' | '.join(_cells(row))} |")
    for kind, cells in (
        ("read", "all | | |"),
        ("named", "| flexes: all | |"),
        ("unused", "| | | all"),
    ):
        names = [n for n, row in TABLE.items() if row.all == {"*"} and getattr(row, kind)]
        lines.append(f"| {_code(names)} | {cells} |")
    lines.append(f"| {_code(list(SKIPPED))} | | | | all: MuJoCo does not see them |")
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    named = "; ".join(f"{label}: {_code(names.split())}" for label, names in row.named.items())
    read, solver, unused = (_code(x.split()) for x in (row.read, row.solver, row.unused))
    return [read, named.replace("::", ":"), solver, unused]


def _code(words: list[str]) -> str:
    return " ".join("all others" if word == "*" else f"`{word}`" for word in words)


def main() -> None:
    """Write the table into the page."""
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(before + START + "\n" + table() + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
