"""The library needs few packages; where one of the others is missing, a line says what to install.

Each test runs in an interpreter of its own, in which the packages named cannot be imported.
"""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from groupwise.extras import EXTRAS, installing

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = sorted({package for packages in EXTRAS.values() for package in packages})
IMPORTED_AS = {
    "tomli-w": "tomli_w",
    "scikit-learn": "sklearn",
    "prometheus-client": "prometheus_client",
}
FRAMES = {"pandas", "polars", "pyarrow"}
"""Whoever has a frame has its package too."""
BROUGHT_ALONG = {"llvmlite", "markupsafe"}
"""By numba and by jinja2."""


def without(packages: list[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run code where the packages are as good as not installed."""
    blocked = f"import sys; sys.modules.update(dict.fromkeys({packages!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + code], capture_output=True, text=True, check=False
    )


def names_of(requirements: list[str]) -> set[str]:
    names = {re.split(r"[<>=\[; ]", requirement)[0] for requirement in requirements}
    return {IMPORTED_AS.get(name, name) for name in names}


class TestDeclarations:
    def test_the_table_is_that_of_the_project(self):
        extras = PROJECT["optional-dependencies"]
        assert {*extras} == {*EXTRAS, "all", "demo", "bench", "dev"}
        for extra, packages in EXTRAS.items():
            assert names_of(extras[extra]) - {"groupwise"} == {*packages}
        assert extras["all"] == [f"groupwise[{','.join(EXTRAS)}]"]
        assert "groupwise[all,demo]" in extras["dev"]

    def test_every_import_is_of_something_declared(self):
        declared = names_of(PROJECT["dependencies"]) | {*OPTIONAL} | FRAMES | BROUGHT_ALONG
        for path in sorted((ROOT / "src").rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                modules = [alias.name for alias in node.names] if type(node) is ast.Import else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    modules = [node.module or ""]
                for module in modules:
                    package = module.partition(".")[0]
                    known = package in {*sys.stdlib_module_names, *declared, "groupwise"}
                    assert known, f"{path} imports {package}"


class TestTheLibraryAlone:
    def test_every_public_name_is_there(self):
        run = without(OPTIONAL, "import groupwise as gw\n[getattr(gw, n) for n in gw.__all__]")
        assert run.returncode == 0, run.stderr

    @pytest.mark.parametrize("package", ["pandas", "polars"])
    def test_it_predicts_learns_saves_and_replays(self, package, tmp_path):
        pytest.importorskip(package)
        code = f"""
import {package}, groupwise as gw
model = gw.Groupwise([gw.by("town")], features=["size"])
frame = {package}.DataFrame({{"town": ["a", "b"] * 9, "size": [0.5] * 18, "y": [1.0, 0.0] * 9}})
model.learn(model.predict({{"town": "a", "size": 1.0}}), 1.0)
model.save({str(tmp_path / "model.gw")!r})
model = gw.load({str(tmp_path / "model.gw")!r})
for progress in (False, True):
    model.replay(frame, target="y", progress=progress)
table = model.regret()
print(table, table._repr_html_(), len(table.to_frame({package!r})))
"""
        run = without([one for one in OPTIONAL if one != package], code)
        assert run.returncode == 0, run.stderr
        assert run.stdout.splitlines()[-1].endswith(" 3")
        assert "37 settled rounds" in run.stdout

    @pytest.mark.parametrize(
        ("code", "package", "extra"),
        [
            ("import groupwise.compat.river", "river", "river"),
            ("import groupwise.compat.sklearn", "sklearn", "sklearn"),
            ("import groupwise.groups as g; g.dumps([g.by('a')])", "tomli_w", "cli"),
            ("import groupwise as gw; gw.datasets.medical()", "pooch", "paper"),
        ],
        ids=["river", "sklearn", "toml", "data set"],
    )
    def test_what_is_missing_is_named_with_its_extra(self, code, package, extra, monkeypatch):
        monkeypatch.delenv("GROUPWISE_DATA", raising=False)
        run = without(OPTIONAL, f"import groupwise.errors\n{code}")
        last = run.stderr.splitlines()[-1]
        assert last.startswith("groupwise.errors.MissingPackageError: ")
        assert last.endswith(f" needs {package}: {installing(extra)}.")

    def test_the_error_is_one_of_ours_and_of_python(self):
        from groupwise.errors import ConfigurationError, MissingPackageError

        assert issubclass(MissingPackageError, ConfigurationError)
        assert issubclass(MissingPackageError, ModuleNotFoundError)

    def test_a_data_file_that_is_there_needs_no_download(self, tmp_path):
        (tmp_path / "insurance.csv").write_text("not the file\n")
        code = f"import groupwise as gw; gw.datasets.medical(data_dir={str(tmp_path)!r})"
        run = without(OPTIONAL, code)
        assert "DatasetError" in run.stderr.splitlines()[-1]
        assert "pip install" not in run.stderr


class TestTheCommandLine:
    @pytest.mark.parametrize(
        "missing", [OPTIONAL, ["typer"], ["matplotlib"]], ids=["all", "typer", "matplotlib"]
    )
    @pytest.mark.parametrize("arguments", [[], ["--help"], ["run", "rows.csv"]], ids=len)
    def test_without_its_extra_it_says_what_to_install(self, missing, arguments):
        code = f"sys.argv[1:] = {arguments!r}; from groupwise.__main__ import main; main()"
        run = without(missing, code)
        assert run.returncode == 2
        assert run.stdout == ""
        assert len(run.stderr.splitlines()) == 1
        assert run.stderr.startswith("groupwise: The command line needs ")
        assert run.stderr.endswith(f": {installing('cli')}.\n")

    @pytest.mark.parametrize(
        ("command", "extras", "package"),
        [("serve", "cli,serve", "uvicorn"), ("reproduce", "cli,paper", "joblib")],
    )
    def test_a_command_asks_for_all_that_it_needs_at_once(self, command, extras, package):
        code = f"sys.argv[1:] = [{command!r}]; from groupwise.__main__ import main; main()"
        run = without(OPTIONAL, code)
        assert run.returncode == 2
        assert len(run.stderr.splitlines()) == 1
        assert "typer" in run.stderr
        assert package in run.stderr
        assert run.stderr.endswith(f": {installing(extras)}.\n")

    def test_a_command_without_another_extra_does_too(self, tmp_path):
        words = ["reproduce", "synthetic-mean", "--out", str(tmp_path / "out")]
        code = f"sys.argv[1:] = {words!r}; from groupwise.__main__ import main; main()"
        run = without(["joblib"], code)
        assert run.returncode == 2
        line = run.stderr.splitlines()[-1]
        assert line == f"groupwise: This command needs joblib: {installing('paper')}."
        assert "Traceback" not in run.stderr

    def test_the_script_is_what_python_runs(self):
        assert PROJECT["scripts"] == {"groupwise": "groupwise.__main__:main"}
        run = subprocess.run(
            [sys.executable, "-m", "groupwise", "--version"], capture_output=True, text=True
        )
        assert (run.returncode, run.stdout.strip()) == (0, PROJECT["version"])


class TestProgress:
    def test_without_rich_it_is_a_line(self):
        code = """
import io
from groupwise import progress
class Terminal(io.StringIO):
    def isatty(self): return True
sys.stderr, progress.PATIENCE, progress.BETWEEN = Terminal(), 0.0, 0.0
with progress.progress_bar(4, "replay") as advance:
    advance(1); advance(1)
print(repr(sys.stderr.getvalue()))
"""
        run = without(["rich"], code)
        assert run.returncode == 0, run.stderr
        shown = ast.literal_eval(run.stdout)
        assert re.match(r"\rreplay 25% 1 rows, [\d,.]+ rows/s", shown)
        assert "\rreplay 50% 2 rows, " in shown
        assert re.search(r"\r +\r$", shown), "the line is wiped out at the end"
