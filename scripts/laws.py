"""Laws of the sources that tests hold: private names, import cycles, fan-out, lengths, tests of classes, riddles.

Everything is read from the syntax trees of a package's files, nothing is imported. A law is a function that takes the
modules and returns what breaks it as `Finding`s; `tests/test_architecture.py` allows none. To list them by hand:
``python scripts/laws.py src/pointillist``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

MAX_LINES = 400
MAX_METHODS = 15
MAX_FAN_OUT = 14
DOCUMENTED = {"_replace", "_asdict", "_fields", "_make", "_field_defaults", "_exit"}
"""Names of named tuples and of `os` that begin with an underscore, but that Python documents as public."""


@dataclass(frozen=True, order=True)
class Finding:
    """A place that breaks a law.

    `what` names it without a line number, so that an exception which names it stays valid when lines move.
    """

    module: str
    what: str
    line: int

    @property
    def key(self) -> str:
        return f"{self.module}: {self.what}"

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.what}"


@dataclass(frozen=True)
class Module:
    """A file of the package, as a syntax tree."""

    name: str
    path: Path
    is_package: bool
    n_lines: int
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def package(self) -> str:
        """The package that a relative import of one dot begins in."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))


Modules = dict[str, Module]


def read_modules(folder: Path) -> Modules:
    """Modules of the package in a folder, by dotted name.

    A stub beside ``__init__.py`` is read in its place, because a package that imports lazily has its imports there.
    """
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [folder.name, *path.relative_to(folder).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        stub = path.with_suffix(".pyi")
        text = (stub if is_package and stub.exists() else path).read_text(encoding="utf-8")
        found[name] = Module(name, path, is_package, len(text.splitlines()), ast.parse(text))
    return found


@dataclass(frozen=True)
class Import:
    """An imported name: `target` is the module, `name` what is taken from it (empty for the module itself)."""

    target: str
    name: str
    bound: str
    line: int


def imports(module: Module, modules: Modules) -> list[Import]:
    """All imports of a module, also those in functions and under ``TYPE_CHECKING``, with relative ones resolved."""
    found = []
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.append(Import(alias.name, "", alias.asname or alias.name.partition(".")[0], node.lineno))
        elif isinstance(node, ast.ImportFrom):
            source = _source(module, node)
            for alias in node.names:
                inside = f"{source}.{alias.name}"
                target, name = (inside, "") if inside in modules else (source, alias.name)
                found.append(Import(target, name, alias.asname or alias.name, node.lineno))
    return found


def _source(module: Module, node: ast.ImportFrom) -> str:
    """The absolute name of what an import statement imports from."""
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def import_graph(modules: Modules) -> dict[str, dict[str, int]]:
    """For every module those that it imports, each with the line where it does so first."""
    graph: dict[str, dict[str, int]] = {name: {} for name in modules}
    for name, module in modules.items():
        for one in imports(module, modules):
            if one.target != name and one.target in modules:
                graph[name].setdefault(one.target, one.line)
    return graph


def private_names(modules: Modules) -> list[Finding]:
    """Uses of names with one leading underscore that belong to another module or to an object of another one's class."""
    return sorted(finding for module in modules.values() for finding in _private_names(module, modules))


def _private_names(module: Module, modules: Modules) -> Iterator[Finding]:
    own, imported = _own_members(module), imports(module, modules)
    names_of_modules = {one.bound for one in imported if not one.name}
    for one in imported:
        if any(_is_private(part) for part in [*one.target.split("."), one.name]):
            yield Finding(module.name, f"imports {one.target}.{one.name}".rstrip("."), one.line)
    for owner, name, line in _attributes(module):
        if not _is_private(name) or name in DOCUMENTED or _is_self(owner):
            continue
        if name not in own or (isinstance(owner, ast.Name) and owner.id in names_of_modules):
            yield Finding(module.name, f"uses {ast.unparse(owner)}.{name}", line)


def _attributes(module: Module) -> Iterator[tuple[ast.expr, str, int]]:
    """Attributes that a module reads or writes, also by `getattr` and its like: their owner, name and line."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute):
            yield node.value, node.attr, node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            name = node.args[1]
            if node.func.id in ("getattr", "hasattr", "setattr", "delattr") and isinstance(name, ast.Constant):
                yield node.args[0], str(name.value), node.lineno


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def _is_self(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def _own_members(module: Module) -> set[str]:
    """Names of methods and attributes that a module's classes define themselves."""
    members: set[str] = set()
    for class_ in module.classes():
        for node in class_.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                members.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                members.add(node.target.id)
            elif isinstance(node, ast.Assign):
                members |= {
                    name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)
                }
                members |= _slots(node)
        for node in ast.walk(class_):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                members.add(node.attr)
    return members


def _slots(node: ast.Assign) -> set[str]:
    if not any(isinstance(target, ast.Name) and target.id == "__slots__" for target in node.targets):
        return set()
    return {str(one.value) for one in ast.walk(node.value) if isinstance(one, ast.Constant)}


def cycles(modules: Modules) -> list[Finding]:
    """Groups of modules that import each other in a circle, one finding for each group."""
    graph = import_graph(modules)
    findings = []
    for group in _components(graph):
        if len(group) > 1:
            first, *others = sorted(group)
            line = min(line for name, line in graph[first].items() if name in group)
            findings.append(Finding(first, f"in a cycle with {', '.join(others)}", line))
    return sorted(findings)


def _components(graph: dict[str, dict[str, int]]) -> list[set[str]]:
    """Strongly connected components: what can be reached from a node and reaches it."""
    reached = {name: _reached(graph, name) for name in graph}
    found: list[set[str]] = []
    for name in graph:
        if not any(name in group for group in found):
            found.append({name} | {other for other in reached[name] if name in reached[other]})
    return found


def _reached(graph: dict[str, dict[str, int]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for name in graph[todo.pop()]:
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return seen


def fan_out(modules: Modules, most: int = MAX_FAN_OUT) -> list[Finding]:
    """Modules that import more than `most` others of the package; the root, a list of public names, may import all."""
    return sorted(
        Finding(name, f"imports more than {most} modules ({len(targets)})", 1)
        for name, targets in import_graph(modules).items()
        if len(targets) > most and "." in name
    )


def long_modules(modules: Modules, most: int = MAX_LINES) -> list[Finding]:
    """Modules of more than `most` lines."""
    return sorted(
        Finding(module.name, f"longer than {most} lines ({module.n_lines})", module.n_lines)
        for module in modules.values()
        if module.n_lines > most
    )


def large_classes(modules: Modules, most: int = MAX_METHODS) -> list[Finding]:
    """Classes that define more than `most` methods and properties.

    Names with two underscores on both sides are not counted: Python asks for them, and `__len__` is no burden to a reader.
    """
    findings = []
    for module in modules.values():
        for class_ in module.classes():
            names = {node.name for node in class_.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
            count = sum(not (name.startswith("__") and name.endswith("__")) for name in names)
            if count > most:
                findings.append(
                    Finding(module.name, f"{class_.name} has more than {most} methods ({count})", class_.lineno)
                )
    return sorted(findings)


def class_tests(modules: Modules, within: str, homes: tuple[str, ...], words: tuple[str, ...]) -> list[Finding]:
    """Questions after the class of an object (isinstance, type, match) in the modules of `within`.

    Asked after are the classes that live in the modules `homes` or below, all that derive from them, and those with one of
    `words` in their names.
    """
    asked_not = _descendants(modules, homes)
    findings = []
    for module in modules.values():
        if not _below(module.name, within):
            continue
        names = _resolved_names(module, modules)
        for node, what in _class_questions(module):
            for name in ast.walk(what):
                if isinstance(name, ast.Name) and (
                    names.get(name.id) in asked_not or any(word in name.id for word in words)
                ):
                    findings.append(Finding(module.name, f"asks for {name.id}", node.lineno))
    return sorted(findings)


def _below(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _class_questions(module: Module) -> Iterator[tuple[ast.expr | ast.pattern, ast.AST]]:
    """Places where a class is asked for, each with the expression that names the classes."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
            if node.func.id in ("isinstance", "issubclass"):
                yield node, node.args[1]
        elif isinstance(node, ast.Compare) and any(_is_type_call(one) for one in [node.left, *node.comparators]):
            yield node, node
        elif isinstance(node, ast.MatchClass):
            yield node, node.cls


def _is_type_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def _resolved_names(module: Module, modules: Modules) -> dict[str, str]:
    """For every name of a module that is a class of the package the class's full name, through re-exports."""
    names = {class_.name: f"{module.name}.{class_.name}" for class_ in module.classes()}
    for one in imports(module, modules):
        if one.name:
            names[one.bound] = _home(f"{one.target}.{one.name}", modules)
    return names


def _home(name: str, modules: Modules) -> str:
    """Where a name is defined that a package may only hand on."""
    for _ in modules:
        target, _, last = name.rpartition(".")
        if target not in modules:
            break
        handed = [one for one in imports(modules[target], modules) if one.bound == last and one.name]
        if not handed:
            break
        name = f"{handed[0].target}.{handed[0].name}"
    return name


def _descendants(modules: Modules, homes: tuple[str, ...]) -> set[str]:
    """Full names of the classes in `homes` and of all that derive from them."""
    bases: dict[str, set[str]] = {}
    for module in modules.values():
        names = _resolved_names(module, modules)
        for class_ in module.classes():
            parents = {names.get(base.id, "") for base in class_.bases if isinstance(base, ast.Name)}
            bases[f"{module.name}.{class_.name}"] = parents
    found = {name for name in bases if any(_below(name.rpartition(".")[0], home) for home in homes)}
    while more := {name for name, parents in bases.items() if parents & found} - found:
        found |= more
    return found


def statistics_or_solver_tests(modules: Modules) -> list[Finding]:
    """Questions after the class of statistics or of solvers in the learners."""
    root = next(iter(modules)).partition(".")[0]
    homes = (f"{root}.solvers", f"{root}.dictionary")
    return class_tests(modules, f"{root}.learners", homes, ("Statistics", "Solver"))


_RIDDLE = re.compile(r"The same(?:[.,:;]| (?:of|in|for|on|at|by|as|with|to)\b)|Of\b")


def riddles(modules: Modules) -> list[Finding]:
    """Docstrings that begin without their subject, which only the lines above them tell: "The same of tiles."."""
    findings = []
    for module in modules.values():
        for node in module.nodes:
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                for name, text, line in _docstrings(node):
                    if _RIDDLE.match(text):
                        findings.append(Finding(module.name, f"{name} is described by a riddle", line))
    return sorted(findings)


def _docstrings(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> Iterator[tuple[str, str, int]]:
    """Strings that describe a definition and the attributes in it, each with the name and the line."""
    named = [(getattr(node, "name", "the module"), node.body[0])] if node.body else []
    for before, after in pairwise(node.body):
        if isinstance(before, ast.Assign | ast.AnnAssign):
            target = before.targets[0] if isinstance(before, ast.Assign) else before.target
            named.append((ast.unparse(target), after))
    for name, one in named:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
            yield name, one.value.value.strip(), one.lineno


LAWS: dict[str, Callable[[Modules], list[Finding]]] = {
    "private names": private_names,
    "import cycles": cycles,
    "fan-out": fan_out,
    "long modules": long_modules,
    "large classes": large_classes,
    "class tests in learners": statistics_or_solver_tests,
    "riddles": riddles,
}


def main() -> None:
    """List what breaks the laws in the package whose folder is given."""
    modules = read_modules(Path(sys.argv[1]))
    for law, check in LAWS.items():
        findings = check(modules)
        print(f"{law}: {len(findings)}", *findings, sep="\n  ")


if __name__ == "__main__":
    main()
