"""The wheel: what is in it, what it needs, and that it works in every CPython that is found, without torch.

DSISTORE_WHEEL names a wheel that is built already; else one is built.
"""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import dsistore
from dsistore import _engine

PROJECT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13")

# What a user without torch does: it ends by printing what the test compares.
SCRIPT = """
import sys, tempfile
import dsistore
assert not {"torch", "numpy", "pyarrow"} & set(sys.modules)
import pyarrow as pa
store = dsistore.open(tempfile.mkdtemp())
rows = pa.table({"a": [1, 2, None], "ids": [[1, 2], None, []], "text": ["x", None, "z"]})
store.ingest("t", rows)
assert store.table("t").scan(rows.column_names).to_arrow().equals(rows)
try:
    store.table("t").torch(["a"])
except ImportError as e:
    print(e)
print(dsistore.__version__, dsistore.__file__)
"""


def run(*command: object, **options: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=900, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    if given := os.environ.get("DSISTORE_WHEEL"):
        return pathlib.Path(given).resolve()
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, PROJECT)
    (made,) = out.iterdir()
    return made


def test_what_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        info = f"dsistore-{dsistore.__version__}.dist-info/"
        package = {n.removeprefix("dsistore/") for n in names if n.startswith("dsistore/")}
        folder = PROJECT / "src" / "dsistore"
        source = {str(p.relative_to(folder)) for p in folder.rglob("*.py")}
        assert package == source | {"py.typed", "libdsistore.so"}
        assert all(n.startswith(("dsistore/", info)) for n in names)
        licences = [n.removeprefix(info + "licenses/licences/") for n in names if n.startswith(info + "licenses/")]
        assert {"LICENSE", "NOTICE", "THIRD_PARTY.md"} <= set(licences)
        modules = re.findall(r"^\| (\S+\.\S+/\S+) ", z.read(info + "licenses/licences/THIRD_PARTY.md").decode(), re.M)
        assert len(modules) > 20
        for m in modules:  # each has a licence of its own in the wheel
            assert any(n.startswith(f"third_party/{m.replace('/', '_')}-") for n in licences), m
        assert any(n.startswith("third_party/std-") for n in licences)  # of what Go itself links in
        metadata = z.read(info + "METADATA").decode()
        library = z.read("dsistore/libdsistore.so")
    assert f"\nVersion: {dsistore.__version__}\n" in metadata and "\nRequires-Dist: numpy" in metadata
    home = {
        str(PROJECT.parent),
        os.path.expanduser("~/go"),
        run("go", "env", "GOROOT").strip(),
        run("go", "env", "GOMODCACHE").strip()
    }
    for path in home:
        assert path.encode() + b"/" not in library, f"the library has the path {path} of the machine that built it"


def test_the_tag_is_what_the_library_needs(wheel):
    """What the release is held to, too: glibc's version, libraries that every system has, exported symbols."""
    if sys.platform != "linux":
        pytest.skip("wheels of macOS are not looked into")
    needs = run("go", "run", "./internal/release", "-check-wheel", wheel, cwd=PROJECT.parent)
    assert needs.startswith(f"{os.uname().machine}, glibc 2."), needs


def pythons() -> dict[str, str]:
    """The CPythons that are found, by version: on the path, and those of pyenv."""
    found = {".".join(map(str, sys.version_info[:2])): sys.executable}
    root = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    for v in VERSIONS:
        places = [*sorted(map(str, root.glob(f"versions/{v}.*/bin/python"))), shutil.which(f"python{v}")]
        for place in filter(None, places):
            says = subprocess.run([place, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"],
                                  capture_output=True, text=True)
            if says.returncode == 0 and says.stdout.strip() == v:
                found.setdefault(v, place)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_it_installs_and_works_without_torch(wheel, tmp_path, version):
    python = pythons().get(version)
    if python is None:
        pytest.skip(f"no CPython {version} here")
    run(python, "-m", "venv", "--without-pip", tmp_path / "venv")
    own = tmp_path / "venv" / "bin" / "python"
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    # By the pip that is here, and without compiling pyarrow: both take longer than the rest.
    installed = subprocess.run([
        sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", own, "install", "-q", "--no-compile",
        "--only-binary=:all:", f"{wheel}[arrow]"
    ], capture_output=True, text=True, timeout=900, env=clean)
    if "Temporary failure in name resolution" in installed.stderr or "NewConnectionError" in installed.stderr:
        pytest.skip("no package index can be reached")
    assert installed.returncode == 0, installed.stderr
    said = run(own, "-c", SCRIPT, cwd=tmp_path, env=clean)
    message, place = said.splitlines()
    assert "PyTorch" in message and "pip install" in message
    assert place.startswith(f"{dsistore.__version__} {tmp_path}")


def test_the_engine_has_the_version_of_the_package(wheel, tmp_path):
    """internal/version has it, and a test of Go holds _version.py to it."""
    assert _engine.call("version") == dsistore.__version__
    with zipfile.ZipFile(wheel) as z:
        z.extractall(tmp_path)
    said = run(sys.executable, "-c", "import dsistore; from dsistore import _engine; print(_engine.call('version'))",
               env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path)
    assert said.strip() == dsistore.__version__


def test_the_versions_that_are_documented_are_those_of_the_tests():
    page = (PROJECT.parent / "docs" / "reference" / "compatibility.md").read_text()
    named = 0
    for requirements in PROJECT.glob("requirements-*.txt"):
        for name, version in re.findall(r"^([\w-]+)==([\d.]+)", requirements.read_text(), re.M):
            said = re.findall(rf"\b{name.removesuffix('-cpu')}(?:-cpu)? (\d+\.\d+\.\d+)", page)
            assert set(said) <= {version}, name
            named += len(said)
    assert named >= 9


def test_there_is_no_source_distribution(tmp_path):
    """It could not contain the Go module around it: it says so instead of being broken."""
    done = subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", tmp_path, PROJECT],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and list(tmp_path.iterdir()) == []
    assert "no source distribution" in done.stdout + done.stderr


def test_a_user_script_type_checks(tmp_path):
    """mypy --strict over the package, and over a script that uses all of it."""
    api = pytest.importorskip("mypy.api")
    package = PROJECT / "src" / "dsistore"
    script = PROJECT / "tests" / "typed_script.py"
    options = ["--strict", "--cache-dir", str(tmp_path), "--config-file", str(PROJECT / "pyproject.toml")]
    os.environ["MYPYPATH"] = str(PROJECT / "src")
    try:
        said, errors, status = api.run([*options, str(package), str(script)])
    finally:
        del os.environ["MYPYPATH"]
    assert status == 0, said + errors


def test_everything_public_has_a_docstring():
    import dsistore.grain
    import dsistore.numpy
    import dsistore.torch

    for module in (dsistore, dsistore.grain, dsistore.numpy, dsistore.torch):
        for name in module.__all__:
            thing = getattr(module, name)
            # That of a dataclass without one is its signature.
            assert thing.__doc__ and not thing.__doc__.startswith(name + "("), name
            for member, value in vars(thing).items() if isinstance(thing, type) else ():
                if not member.startswith("_") and (isinstance(value, property) or inspect.isfunction(value)):
                    assert value.__doc__, f"{name}.{member}"
