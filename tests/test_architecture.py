"""Rules of the code that no linter holds."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "snapstore"
MODULES = sorted(PACKAGE.rglob("*.py"))
PYTHON = [
    *MODULES,
    *sorted((ROOT / "tests").rglob("*.py")),
    *sorted((ROOT / "examples").rglob("*.py")),
]
LONGEST = 400
BANNED = re.compile(
    r"(?:^|_|(?<=[a-z]))(?:Manager|Helper|Utils?|Handler|Processor|Data|Info|Common)(?:$|_|(?=[A-Z]))",
)


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_is_mocked() -> None:
    assert not {
        path
        for path in PYTHON
        for name in imports(path)
        if name.startswith(("unittest.mock", "mock."))
    }


def test_no_work_is_left_for_later() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")
    assert not [
        (path, token.string)
        for path in PYTHON
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        if token.type == tokenize.COMMENT and any(mark in token.string for mark in marks)
    ]


def test_a_module_is_short_and_says_what_it_is() -> None:
    long = {path: lines for path in MODULES if (lines := path.read_text().count("\n")) > LONGEST}
    assert not long
    assert not [path for path in MODULES if not ast.get_docstring(tree(path))]


def test_names_say_something() -> None:
    named = [
        (path, node.name)
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    ]
    named += [(path, path.stem.title()) for path in MODULES]
    assert not [(path, name) for path, name in named if BANNED.search(name)]


def test_only_the_command_line_prints_or_exits() -> None:
    library = [
        path
        for path in MODULES
        if not path.is_relative_to(PACKAGE / "cli") and path.name != "__main__.py"
    ]
    testing = PACKAGE / "testing"
    for program in (testing / "kill.py", testing / "child.py", PACKAGE / "layouts/lock_watch.py"):
        library.remove(program)  # what it forks must end at once
    assert not [
        (path, node.lineno)
        for path in library
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"print", "exit", "sys.exit", "os._exit"}
    ]


def test_importing_a_module_reads_neither_clock_nor_environment() -> None:
    def at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
        for statement in body:
            if isinstance(statement, ast.FunctionDef):
                for default in [*statement.args.defaults, *statement.args.kw_defaults]:
                    if default is not None:
                        yield from ast.walk(default)
            elif isinstance(statement, ast.ClassDef):
                yield from at_import(statement.body)
            elif not (isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test)):
                yield from ast.walk(statement)

    forbidden = re.compile(r"os\.environ|getenv|datetime\.now\(|time\.(time|monotonic)\(")
    assert not [
        (path, ast.unparse(node))
        for path in MODULES
        for node in at_import(tree(path).body)
        if isinstance(node, ast.Call | ast.Subscript) and forbidden.search(ast.unparse(node))
    ]
