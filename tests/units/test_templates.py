"""Every attribute that a template of the page names is one of the report's objects."""

import inspect
from types import ModuleType

import pytest
from jinja2 import nodes

from orbench.base import words
from orbench.report import (
    behind,
    columns,
    finding,
    measures,
    page,
    page_rows,
    results,
    standings,
)
from orbench.report import tables as grids
from orbench.report.pictures import drawing, every
from orbench.stats import core, estimates, intervals

MODULES = [
    words,
    behind,
    columns,
    finding,
    measures,
    page,
    page_rows,
    results,
    standings,
    grids,
    drawing,
    every,
]
MODULES += [core, estimates, intervals]
TEXT = [
    "append",
    "count",
    "iterrows",
    "sum",
    "decode",
    "digest",
    "encode",
    "format",
    "get",
    "index",
    "items",
    "split",
    "update",
]
LOOP = ["cycle", "first", "index", "index0", "last", "revindex0"]
WITH_NAMES = ("map", "selectattr", "rejectattr", "groupby", "sum", "sort")  # filters


def names_in(module: ModuleType) -> set[str]:
    """The fields, properties and methods of a module's classes."""
    names = set[str]()
    for _, one in inspect.getmembers(module, inspect.isclass):
        if one.__module__ == module.__name__:
            names.update(vars(one), getattr(one, "__annotations__", {}))
    return names


def attributes_in(template: nodes.Template) -> set[str]:
    """The attributes that a template names, also as texts in filters."""
    names = {node.attr for node in template.find_all(nodes.Getattr)}
    for node in template.find_all(nodes.Filter):
        if node.name in WITH_NAMES:
            given = [*node.args[:1], *(one.value for one in node.kwargs if one.key == "attribute")]
            for one in given:
                if isinstance(one, nodes.Const):
                    names.update(filter(str.isidentifier, one.value.split(".")))
    return names


@pytest.mark.parametrize("name", page.JINJA.list_templates(extensions=["html", "j2"]))
def test_templates_name_attributes_of_the_report(name: str) -> None:
    source = (page.FOLDER / name).read_text(encoding="utf-8")
    known = {*TEXT, *LOOP}.union(*map(names_in, MODULES))
    assert attributes_in(page.JINJA.parse(source)) - known == set()


@pytest.mark.parametrize("table", ["RATES", "COMPARISONS", "ASSOCIATIONS", "BOARD"])
def test_columns_name_attributes_of_the_report(table: str) -> None:
    known = set[str]().union(*map(names_in, MODULES))
    for column in getattr(columns, table):
        assert columns.Shown(column.shown)
        if column.source not in columns.COMPUTED:
            assert known.issuperset(column.source.split(".")), column.source
