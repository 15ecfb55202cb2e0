"""The shape of the package: imports point one way, heavy ones wait, files stay small."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "groupwise"
FILES = sorted(PACKAGE.rglob("*.py"))

LAYERS = {
    "words": {
        *(
            "errors",
            "extras",
            "writing",
            "progress",
            "turns",
            "arrays",
            "class_names",
            "loss",
            "losses",
            "groups",
            "protocols",
        ),
        "datasets",
    },
    "parts": {
        *("kernels", "store", "oracles", "regret", "learners", "aggregators", "archive"),
        "bounds",
        "features",
    },
    "core": {
        *(
            "staff",
            "reduction",
            "classes",
            "recalibration",
            "intervals",
            "dyadic",
            "layers",
            "accounts",
            "pipeline",
            "carrying",
            "stream",
            "ticket",
            "registry",
            "validation",
            "assignment",
            "reading",
            "records",
            "figures",
            "segments",
            "segmented",
            "sums",
            "engines",
            "replaying",
            "replay_frames",
            "model",
        ),
        *("partial_feedback", "enumerated", "configuration", "snapshot", "presets"),
    },
    "uses": {"checks", "compat", "report", "files", "paper", "serve", "client"},
    "cli": {"cli", "__main__"},
}
"""A module may import from its own layer and from those above; nothing imports in a circle."""

HEAVY = ("numba", "scipy", "pandas", "polars", "pyarrow", "river", "sklearn", "matplotlib", "ray")
LONGEST = 520


def part_of(module):
    names = module.split(".")
    return names[1] if len(names) > 1 else "__init__"


def module_of(path):
    names = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


MODULES = {module_of(path) for path in FILES}


def imports(path):
    """Every module that a file imports, also inside functions, but not for type checking only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            if base == "groupwise":
                yield from (f"groupwise.{alias.name}" for alias in node.names)
            else:
                named = (f"{base}.{alias.name}" for alias in node.names)
                yield from (name if name in MODULES else base for name in named)


def inside(path):
    """The parts of the package that a file imports from, its own left out."""
    own = part_of(module_of(path))
    for module in imports(path):
        if module.split(".")[0] == "groupwise" and module != "groupwise.__version__":
            part = part_of(module)
            if part != own:
                yield own, part


EDGES = sorted({edge for path in FILES for edge in inside(path)})


def test_every_part_has_its_layer():
    parts = {part_of(module_of(path)) for path in FILES} - {"__init__"}
    placed = [part for layer in LAYERS.values() for part in layer]
    assert len(placed) == len(set(placed))
    assert parts == set(placed)


@pytest.mark.parametrize(("part", "other"), EDGES, ids=lambda name: name)
def test_imports_point_one_way(part, other):
    depth = {name: i for i, layer in enumerate(LAYERS.values()) for name in layer}
    depth["__init__"] = len(LAYERS)
    if other == "__init__":  # the public names: for what stands outside the core
        assert depth[part] > depth["model"]
    else:
        assert depth[other] <= depth[part], f"{part} imports {other}"


def test_imports_make_no_circle():
    """Not between parts nor inside them, nor hidden in functions."""
    public = MODULES - {"groupwise"}
    waiting = {
        module_of(path): {name for name in imports(path) if name in public} - {module_of(path)}
        for path in FILES
        if module_of(path) in public
    }
    while waiting:
        ready = {module for module, others in waiting.items() if not others & waiting.keys()}
        assert ready, f"these import each other: {sorted(waiting)}"
        waiting = {module: others for module, others in waiting.items() if module not in ready}


def test_nobody_asks_whether_a_learner_is_a_ridge():
    """What else than its own file and the reading of settings needs to know is said by the part."""
    asks = re.compile(r"isinstance\(.*(Ridge|Logistic|FTPL)")
    asking = {
        path.relative_to(PACKAGE).as_posix()
        for path in FILES
        if path.parent.name != "learners" and asks.search(path.read_text(encoding="utf-8"))
    }
    assert asking <= {"validation.py"}


def test_learners_and_aggregators_do_not_know_each_other():
    assert ("learners", "aggregators") not in EDGES
    assert ("aggregators", "learners") not in EDGES


def test_kernels_know_nothing_but_kernels_and_arrays():
    assert {other for part, other in EDGES if part == "kernels"} == {"arrays"}


def test_commands_hold_no_algorithm():
    known = {other for part, other in EDGES if part == "cli"}
    assert not known & {"kernels", "reduction", "learners", "aggregators", "regret", "model"}


def test_other_libraries_are_imported_where_they_belong():
    allowed = {
        "river": {"compat"},
        "sklearn": {"compat", "oracles"},
        "matplotlib": {"report"},
        "numba": {"kernels"},
        "ray": {"engines"},
    }
    for path in FILES:
        for module in imports(path):
            library = module.split(".")[0]
            if library in allowed:
                assert part_of(module_of(path)) in allowed[library], f"{path} imports {library}"


@pytest.mark.parametrize(
    "code",
    [
        "import groupwise",
        "import groupwise; groupwise.errors, groupwise.GroupwiseError, groupwise.by",
        "import groupwise.cli",
    ],
    ids=["package", "errors and groups", "command line"],
)
def test_heavy_imports_wait(code):
    check = f"{code}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_model_needs_no_other_library_of_models():
    code = (
        "import groupwise as gw; m = gw.Groupwise([gw.by('a')]); m.learn_one({'a': 'b'}, 0.5);"
        "import sys; print([m for m in ('river', 'sklearn', 'pandas', 'polars', 'matplotlib',"
        "'ray', 'pyarrow') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_files_stay_small():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    long = {str(path.relative_to(PACKAGE)): n for path, n in lengths.items() if n > LONGEST}
    assert not long, "split them: one idea each"


def test_every_public_name_is_there():
    import groupwise

    for name in groupwise.__all__:
        assert getattr(groupwise, name) is not None
    assert [name for name in dir(groupwise) if not name.startswith("_")] == groupwise.__all__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = groupwise.nonsense
