"""The examples and the page do what they say; the stubs say what there is."""

import ast
import inspect
import re
import sys

import pytest
from jobs import ROOT, run, script

import fmpl

EXAMPLES = [
    ("hello", (1, 3), "rank 0 of {n} listens"),
    ("ring", (1, 4), "the sum of 1 to {n} is"),
    ("halo", (1, 2, 3), "50 steps on {n} ranks: the same as on one"),
    ("work_queue", (1, 4), "200 tasks done by {n} ranks"),
    ("frames", (1, 3), "50 frames were handed to"),
    ("tasks", (2, 3), "100 messages with each of {n} ranks, by tasks of one thread; the clock ticked: True"),
]


@pytest.mark.parametrize("name, n, says", [(name, n, says) for name, numbers, says in EXAMPLES for n in numbers])
def test_examples(name, n, says):
    done = run(n, sys.executable, ROOT / "examples" / "python" / f"{name}.py")
    assert done.returncode == 0 and says.format(n=n) in done.stdout, done


def test_all_examples_are_run():
    assert {path.stem for path in (ROOT / "examples" / "python").glob("*.py")} == {name for name, _, _ in EXAMPLES}


def blocks():
    """The programs of the page, and what each prints."""
    text = (ROOT / "docs" / "python.md").read_text()
    return re.findall(r"```python\n(.*?)```\n+```console\n\$ fmpl run -n (\d+) python \w+\.py\n(.*?)```", text, re.S)


@pytest.mark.parametrize("place", range(len(blocks())))
def test_programs_of_the_page(place, tmp_path):
    program, n, prints = blocks()[place]
    done = script(int(n), program, tmp_path)
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == sorted(prints.splitlines()), done


def test_the_page_has_programs():
    assert len(blocks()) >= 4


def stubs():
    tree = ast.parse((ROOT / "src" / "python" / "fmpl" / "__init__.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return classes, functions


def parameters(node):
    """Names of the parameters, and which have a default."""
    args = [a.arg for a in node.args.args if a.arg != "self"]
    without = len(args) - len(node.args.defaults)
    by_name = [(a.arg, default is not None) for a, default in zip(node.args.kwonlyargs, node.args.kw_defaults)]
    return [(name, k >= without) for k, name in enumerate(args)] + by_name


def of_runtime(call):
    signature = inspect.signature(call)
    return [(p.name, p.default is not p.empty) for p in signature.parameters.values() if p.name != "self"]


def test_stubs_say_what_there_is():
    classes, functions = stubs()
    public = {name for name in fmpl.__all__ if not name.startswith("_")}
    assert public == set(classes) | set(functions)
    for name, node in functions.items():
        assert parameters(node) == of_runtime(getattr(fmpl, name)), name
        assert getattr(fmpl, name).__doc__, name
    for name, node in classes.items():
        real = getattr(fmpl, name)
        assert real.__doc__, name
        if name in ("Code", "Counter"):
            members = {m.targets[0].id: m.value.value for m in node.body if isinstance(m, ast.Assign)}
            assert members == {member: value.value for member, value in real.__members__.items()}, name
        if name in ("Code", "Counter", "Error"):
            continue
        methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
        there = {m for m in vars(real) if not m.startswith("_")}
        assert there == {m for m in methods if not m.startswith("_")}, name
        for method, stub in methods.items():
            attribute = getattr(real, method, None)
            assert attribute is not None or method == "__buffer__", (name, method)
            if method.startswith("_"):
                continue
            assert attribute.__doc__, (name, method)
            if not stub.decorator_list:
                assert parameters(stub) == of_runtime(attribute), (name, method)
    assert [c.name for c in fmpl.Code] == [n.targets[0].id for n in classes["Code"].body if isinstance(n, ast.Assign)]
