"""The type stubs declare exactly what the compiled module has."""

import ast
import inspect
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import antinoise as an
from antinoise import _antinoise, types

STUBS = ast.parse((Path(an.__file__).parent / "_antinoise.pyi").read_text())
# Members that Python gives every class, and methods that exist only to refuse.
COMMON = set(dir(object)) | {"__module__"}


def public(names):
    return {name for name in names if not name.startswith("_")}


def declared(body):
    """Functions, classes and properties by name."""
    found = {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return found | {node.target.id: node for node in body if isinstance(node, ast.AnnAssign)}


def parameters(node):
    """Names of a declared function's parameters with their kinds and defaults."""
    arguments = node.args
    positional = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + [
        ast.literal_eval(d) for d in arguments.defaults
    ]
    given = [None] * (len(positional) - len(arguments.defaults)) + [True] * len(arguments.defaults)
    found = [
        (p.arg, False, g, d) for p, g, d in zip(positional, given, defaults) if p.arg not in ("self", "cls")
    ]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults)
    return found + [(k.arg, True, d is not None or None, d and ast.literal_eval(d)) for k, d in keywords]


def there(function):
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        given = parameter.default is not inspect.Parameter.empty
        default = parameter.default if given else None
        found.append(
            (parameter.name, parameter.kind is inspect.Parameter.KEYWORD_ONLY, given or None, default)
        )
    return found


def test_every_public_name_is_declared_and_there():
    stubs = declared(STUBS.body)
    assert public(stubs) == public(dir(_antinoise))
    assert set(an.__all__) == public(dir(_antinoise)) - {"run_command"} | {"__version__"}


@pytest.mark.parametrize("name", sorted(public(declared(STUBS.body))))
def test_what_is_declared_is_what_is_there(name):
    node, found = declared(STUBS.body)[name], getattr(_antinoise, name)
    assert found.__doc__ and len(found.__doc__) > 20, f"{name} has no documentation"
    if isinstance(node, ast.FunctionDef):
        return compared(name, node, found)
    members = {member: getattr(found, member) for member in dir(found)}
    assert public(declared(node.body)) == public(members)
    for member, inner in declared(node.body).items():
        assert member in members, f"{name}.{member}"
        is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in inner.decorator_list)
        assert is_property == inspect.isgetsetdescriptor(members[member]), f"{name}.{member}"
        if member == "__init__":
            compared(name, inner, found)
        elif not is_property and not member.startswith("__"):
            compared(f"{name}.{member}", inner, members[member])
    return None


def compared(name, node, found):
    assert parameters(node) == there(found), name


def documented():
    """Every declared class, function and property, by name."""
    for name, node in declared(STUBS.body).items():
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not name.startswith("_"):
            yield name, node
            if isinstance(node, ast.ClassDef):
                inner = declared(node.body).items()
                yield from ((f"{name}.{member}", made) for member, made in inner if member[0] != "_")


@pytest.mark.parametrize("name, node", list(documented()), ids=[name for name, _ in documented()])
def test_what_is_declared_is_documented_with_its_parameters(name, node):
    text = ast.get_docstring(node) or ""
    assert len(text) > 15, name
    given = node
    if isinstance(node, ast.ClassDef):
        inner = declared(node.body)
        given = inner.get("__init__", inner.get("__new__"))
    if given is not None and "Args:" in text:
        missing = [p for p, *_ in parameters(given) if not re.search(rf"^    .*\b{p}\b.*:", text, re.M)]
        assert not missing, (name, missing)


def test_what_is_returned_has_the_keys_that_are_declared(tmp_path):
    plan = an.plan(100, 10, epochs=1, epsilon=1.0, delta=1e-6, mechanism=["identity", "blt:2"])
    row = an.compare(["identity"], [8])[0]
    account = an.account(1.0, 1e-5)
    for found, kind in (
        (plan.sensitivity, types.Sensitivity),
        (plan.candidates[0], types.Candidate),
        (an.loss("identity", 8), types.Loss),
        (row, types.ComparedLoss),
    ):
        assert set(found) == set(kind.__annotations__), kind
    assert set(types.Account.__annotations__) <= set(account)
    assert plan.sampler["kind"] == "cyclic" and set(plan.sampler) <= set(types.Sampler.__annotations__)
    with an.RunningCounts.create(
        tmp_path / "r", ["a"], periods=2, epsilon=1, delta=1e-6, max_periods=1
    ) as counts:
        found = counts.freeze(0, [{"t": 0, "u": "x", "k": "a"}], time="t", user="u", key="k")
        assert set(found) == set(types.FreezeReport.__annotations__)
        found = counts.freeze(1, [], time="t", user="u", key="k", check=True)
        assert set(found) == set(types.FreezeCheck.__annotations__)
        status = counts.status()
        assert set(status) <= set(types.ReleaseStatus.__annotations__)
        assert set(status["queries"][0]) <= set(types.QueryStatus.__annotations__)


@pytest.mark.parametrize("setting", get_args(types.SettingName))
def test_every_kind_of_sampler_and_accountant_is_declared(setting):
    min_sep = 5 if setting == "federated" else None
    plan = an.plan(
        100,
        10,
        steps=8,
        epsilon=1.0,
        delta=1e-6,
        setting=setting,
        min_sep=min_sep,
        mechanism="banded-toeplitz:2",
    )
    kinds = get_type_hints(types.Sampler)
    assert set(plan.sampler) <= set(kinds) and plan.sampler["kind"] in get_args(kinds["kind"])
    assert plan.accountant in get_args(types.AccountantName)
    sizes = plan.batch_sizes(0)
    assert (sizes is None) == (setting == "federated")
    assert sizes is None or sizes[0] in (0, sizes[1])
