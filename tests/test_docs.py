"""The documentation cannot drift: its code runs, its commands exist, and it builds."""

import ast
import codeop
import contextlib
import doctest
import importlib
import importlib.util
import io
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest
import typer

import groupwise
from tests.few import few

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES_INDEX = ROOT / "docs/index.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = ("pandas", "polars", "river", "sklearn")


def blocks(page):
    """The fenced blocks of a page: (language, text, line)."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield match[1], match[2], text.count("\n", 0, match.start()) + 2


def name_of(path):
    return str(path.relative_to(ROOT))


LONG = "classifiers.py"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"), key=lambda one: (one.name == LONG, one.name))


class TestCode:
    @pytest.mark.parametrize("page", PAGES, ids=name_of)
    def test_blocks_run_and_print_what_stands_below(self, page, tmp_path, monkeypatch):
        found = list(blocks(page))
        if not any(language == "python" for language, _, _ in found):
            pytest.skip("no Python on this page")
        for package in NEEDS:
            pytest.importorskip(package)
        monkeypatch.chdir(tmp_path)
        module = type(sys)("page")
        monkeypatch.setitem(sys.modules, "page", module)  # classes defined there can be pickled
        printed = None
        for language, text, line in found:
            if language == "python":
                code = compile("\n" * (line - 1) + text, str(page), "exec")
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(code, module.__dict__)
                printed = out.getvalue()
            elif language == "text" and printed is not None:
                assert printed == text, f"line {line}"
                printed = None

    def test_the_readme_can_be_pasted_into_the_interactive_prompt(self):
        """Which takes a line at a time, and ends a block at an empty one."""
        for language, text, line in blocks(ROOT / "README.md"):
            waiting: list[str] = []
            for code in [*text.splitlines(), ""] if language == "python" else ():
                waiting.append(code)
                try:
                    whole = codeop.compile_command("\n".join(waiting), symbol="single")
                except SyntaxError as error:
                    pytest.fail(f"block in line {line}: {error}")
                if whole is not None:
                    waiting = []
            assert not waiting, f"block in line {line}"

    def test_the_round_loop_has_ten_lines(self):
        loop = next(text for _, text, _ in blocks(ROOT / "README.md") if "gw.Groupwise(" in text)
        assert len([line for line in loop.splitlines() if line.strip()]) <= 10

    @pytest.mark.parametrize("script", few(EXAMPLES, 2), ids=name_of)
    def test_examples_run(self, script, tmp_path):
        run = subprocess.run(
            [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        assert run.stdout

    @pytest.mark.parametrize(
        "name",
        sorted(m.name for m in pkgutil.walk_packages(groupwise.__path__, "groupwise.")),
    )
    def test_examples_in_docstrings(self, name):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        if ">>>" not in Path(spec.origin).read_text(encoding="utf-8"):
            return
        for package in NEEDS:
            pytest.importorskip(package)
        results = doctest.testmod(
            importlib.import_module(name),
            optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
        )
        assert results.failed == 0


def installed_by(text):
    """What the lines ``pip install`` in a text bring, by the names that are imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    renamed = {"scikit-learn": "sklearn", "tomli-w": "tomli_w"}
    found: set[str] = set()
    waiting = list(project["dependencies"])
    for names in re.findall(r"pip install '\.\[([\w,]+)\]'", text):
        waiting += [f"groupwise[{names}]"]
    waiting += re.findall(r"pip install ([a-z][\w-]*)", text)
    while waiting:
        requirement = waiting.pop()
        own = re.match(r"groupwise\[([\w,]+)\]", requirement)
        if own:
            waiting += [one for extra in own[1].split(",") for one in extras[extra]]
        else:
            name = re.split(r"[^\w-]", requirement)[0]
            found.add(renamed.get(name, name))
    return found


class TestInstall:
    """Nothing is imported that the lines on the page do not bring."""

    @pytest.mark.parametrize("page", PAGES, ids=name_of)
    def test_sections_need_what_their_install_line_brings(self, page):
        first, *sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for section in (first, *sections):
            brought = installed_by(first + section)
            for match in FENCE.finditer(section):
                if match[1] == "python":
                    needed = set(imported(match[2])) - {*sys.stdlib_module_names, "groupwise"}
                    assert needed <= brought, section.splitlines()[0]

    def test_a_line_brings_its_extras_and_what_these_bring(self):
        assert {"numpy", "scipy", "numba"} <= installed_by("")
        assert "polars" not in installed_by("pip install .")
        assert {"polars", "pandas"} <= installed_by("`pip install '.[frames]'`")
        assert {"typer", "starlette", "sklearn"} <= installed_by("pip install '.[serve,sklearn]'")
        assert "lightgbm" in installed_by("pip install lightgbm")


def imported(code):
    """The packages that code imports, and those that our adapters and writing TOML do."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "declarations.dumps":
            yield "tomli_w"
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
        for name in names:
            adapter = re.fullmatch(r"groupwise\.compat\.(\w+)", name)
            yield adapter[1] if adapter else name.split(".")[0]


class TestCommands:
    def commands(self):
        from groupwise.cli import app

        command: Any = typer.main.get_command(app)
        return command.commands

    def shell_lines(self):
        for page in PAGES:
            for language, text, _ in blocks(page):
                if language in ("sh", "bash", "shell"):
                    for line in text.replace("\\\n", " ").splitlines():
                        if line.startswith("groupwise "):
                            yield page.name, shlex.split(line, comments=True)[1:]

    def test_they_and_their_options_exist(self):
        commands = self.commands()
        lines = list(self.shell_lines())
        assert len(lines) > 4
        for page, (name, *words) in lines:
            assert name in commands, f"{page}: groupwise {name}"
            options = {text for parameter in commands[name].params for text in parameter.opts}
            for word in words:
                if word.startswith("--"):
                    assert word.split("=")[0] in options, f"{page}: groupwise {name} {word}"

    @pytest.mark.slow
    def test_the_section_on_files_runs_as_it_is_printed(self, tmp_path, monkeypatch):
        """From the line that makes the file to the last."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "examples").symlink_to(ROOT / "examples")
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        section = readme.split("## Your own file")[1].split("\n## ")[0]
        (lines,) = (text.splitlines() for language, text in FENCE.findall(section))
        assert len(lines) == 4
        for line in lines:
            name, *words = shlex.split(line)
            command = {"python": [], "groupwise": ["-m", "groupwise"]}[name]
            run = subprocess.run([sys.executable, *command, *words], check=False)
            assert run.returncode == 0, line
        assert (tmp_path / "groupwise-run/report.html").exists()
        assert (tmp_path / "predicted.csv").exists()

    def test_no_command_needs_a_newer_curl_than_most_have(self):
        for page in PAGES:
            assert "curl --json" not in page.read_text(encoding="utf-8"), page.name

    def test_make_has_what_the_readme_names(self):
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
            for target in re.findall(r"^make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE):
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), target

    def test_the_workflow_runs_make_on_every_supported_python(self):
        workflow = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        supported = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
        listed = re.search(r"python: \[(.*)\]", workflow)
        assert listed is not None
        assert re.findall(r"3\.\d+", listed[1]) == supported
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = re.findall(r"make PYTHON=python ([a-z-]+)$", workflow, re.MULTILINE)
        assert {"test", "test-slow"} <= {*targets}
        for target in targets:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target

    def test_the_page_is_what_help_says(self):
        spec = importlib.util.spec_from_file_location("cli_page", ROOT / "docs/generate_cli.py")
        assert spec is not None
        assert spec.loader is not None
        generator = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(generator)
        stands = generator.PAGE.read_text(encoding="utf-8")
        assert stands == generator.page(), "run python docs/generate_cli.py"


class TestPages:
    def test_links_between_files_lead_somewhere(self):
        for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
                if not target.startswith(("http://", "https://")):
                    assert (page.parent / target).exists(), f"{page.name}: {target}"

    def test_the_map_in_contributing_is_right(self):
        """Every path of the package that CONTRIBUTING.md names exists."""
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        table = [line for line in text.splitlines() if line.startswith("|")]
        for path in re.findall(r"`([\w/]+(?:\.py|/))`", "\n".join(table)):
            places = (ROOT / "src/groupwise" / path, ROOT / path)
            assert any(place.exists() for place in places), path

    def test_every_page_is_in_the_menu_and_on_the_first_page(self):
        """The menu of the built pages, and the list of what there is."""
        menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("nav:")[1].split("\n\n")[0]
        listed = re.findall(r": ([a-z_]+\.md)$", menu, re.MULTILINE)
        assert sorted(listed) == [page.name for page in PAGES[1:]]
        linked = re.findall(r"\]\(([a-z_]+\.md)\)", PAGES_INDEX.read_text(encoding="utf-8"))
        assert sorted({*linked, "index.md"}) == sorted(listed)

    def test_public_names_have_docstrings(self):
        for name in groupwise.__all__:
            assert (getattr(groupwise, name).__doc__ or "").strip(), name

    def test_public_names_are_on_the_page_of_the_interface(self):
        """Those of the package and of its parts, but for what only other parts use."""
        page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
        named = {name.split(".")[-1] for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
        named |= {
            name
            for members in re.findall(r"members: \[(.*)\]", page)
            for name in members.split(", ")
        }
        contracts = {"Learner", "Aggregator", "Oracle", "PolicyOracle", "Engine"}
        assert contracts | {"Client", "AsyncClient"} <= named
        inner = {"Loss", "Widened", "loss_from_dict", "oracle_from_dict", "PAPER_SEEDS"}
        inner |= {"AGGREGATOR_CHECKS", "LEARNER_CHECKS"}
        parts = ("aggregators", "bounds", "checks", "datasets", "learners", "losses", "oracles")
        modules = [groupwise, *(importlib.import_module(f"groupwise.{part}") for part in parts)]
        for module in modules:
            for name in module.__all__:
                described = isinstance(getattr(module, name), types.ModuleType | str)
                error = name.endswith(("Error", "Failed"))
                assert described or error or name in named | inner, f"{module.__name__}.{name}"

    def test_every_file_says_what_it_is(self):
        for path in sorted((ROOT / "src").rglob("*.py")):
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path

    def test_it_builds_strictly(self, tmp_path):
        pytest.importorskip("mkdocs")
        pytest.importorskip("mkdocstrings")
        run = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        for page in PAGES[1:]:
            assert (tmp_path / f"{page.stem}.html").exists()
        interface = (tmp_path / "api.html").read_text(encoding="utf-8")
        for name in ("predict", "learn", "regret", "coverage", "calibration", "replay", "save"):
            assert f'id="groupwise.model.Groupwise.{name}"' in interface, name
