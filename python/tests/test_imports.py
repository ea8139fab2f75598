"""The modules of the package: who imports whom, and which of them need PyTorch."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator
from graphlib import TopologicalSorter

import dsistore

ROOT = pathlib.Path(dsistore.__file__).parent


def name_of(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(p): p for p in sorted(ROOT.rglob("*.py"))}


def imported(module: str) -> Iterator[str]:
    """All that a module imports: in functions and for types too."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *filter(None, [node.module])])
            for a in node.names:
                yield full if (full := f"{base}.{a.name}") in MODULES else base


def test_imports_have_no_circle():
    graph = {m: {i for i in imported(m) if i in MODULES and i not in (m, "dsistore")} for m in MODULES}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)  # a CycleError names the circle


FRAMEWORKS = {"torch": {"torch", "torchrec"}, "jax": {"jax"}, "tensorflow": {"tensorflow"}, "grain": {"grain"}}


def test_no_output_imports_the_framework_of_another():
    """Nor does anything else, but for Table.torch, which looks whether PyTorch is there."""
    for output, frameworks in FRAMEWORKS.items():
        for module in MODULES:
            if not (module.startswith(f"dsistore.{output}") or output == "torch" and module == "dsistore.table"):
                assert not {i.split(".")[0] for i in imported(module)} & frameworks, (module, output)
    assert not any(i.split(".")[0] == "grain" for i in imported("dsistore.grain"))  # it needs a protocol, no class


def test_only_the_torch_package_imports_torch():
    """But for Table.torch, which imports it when it is called."""
    need = {m for m in MODULES if any(i.split(".")[0] in ("torch", "torchrec") for i in imported(m))}
    assert {m for m in need if not m.startswith("dsistore.torch")} <= {"dsistore.table"}
    assert {m for m in MODULES if m.startswith("dsistore.torch") and m != "dsistore.torch"} == need - {"dsistore.table"}
