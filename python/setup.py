"""Builds the engine, a Go package of this repository, into the wheel as a C shared library.

The library talks to Python through ctypes, so that one wheel serves every CPython of a platform: its tag is
py3-none-PLATFORM.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MACOS = sysconfig.get_platform().startswith("macosx")  # the platform that the wheel is for: make release says another
LIBRARY = "libdsistore.dylib" if MACOS else "libdsistore.so"
GO = os.environ.get("GO", "go")


def build_library(target):
    target.parent.mkdir(parents=True, exist_ok=True)
    flags = "-s -w"
    for name in ("Commit", "Date"):  # a release says what it was made from
        if value := os.environ.get(f"DSISTORE_{name.upper()}"):
            flags += f" -X github.com/dsistore/dsistore/internal/version.{name}={value}"
    if not MACOS:
        # Symbols of this library are its own, also beside another Go library that exports the same ones.
        flags += " -extldflags=-Wl,-Bsymbolic"
    subprocess.run(
        [GO, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-tags=pebblegozstd,grpcnotrace",
         f"-ldflags={flags}", "-o", str(target), "./cshared"],
        cwd=HERE, check=True, env={**os.environ, "CGO_ENABLED": "1"},
    )
    target.with_suffix(".h").unlink(missing_ok=True)


def collect_licences():
    """Puts ours, and those of what the library is linked with, where pyproject.toml looks for them."""
    target = HERE / "licences"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name in ("LICENSE", "NOTICE", "THIRD_PARTY.md"):
        shutil.copy(ROOT / name, target)
    others = target / "third_party"
    # Not for the platform that a library is built for.
    here = {k: v for k, v in os.environ.items() if k not in ("GOOS", "GOARCH", "CC")}
    subprocess.run([GO, "run", "-buildvcs=false", "./internal/notice", "-texts", str(others)], cwd=ROOT, check=True,
                   env=here)
    for module in others.iterdir():  # pyproject.toml takes no other characters
        module.rename(others / re.sub(r"[^\w.-]", "-", module.name))


def manylinux(library, platform):
    """The tag that says which glibc a library needs: the newest of the versions of its symbols (PEP 600). A library for
    another libc keeps the platform's own tag."""
    versions = [(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", library.read_bytes())]
    if not versions or not platform.startswith("linux_"):
        return platform
    major, minor = max(versions)
    return f"manylinux_{major}_{max(minor, 17)}_{platform.removeprefix('linux_')}"


class BuildEngine(build_py):
    def run(self):
        if not self.editable_mode:  # an older build may have left modules here that are gone
            shutil.rmtree(pathlib.Path(self.build_lib) / "dsistore", ignore_errors=True)
        super().run()
        package = HERE / "src" if self.editable_mode else pathlib.Path(self.build_lib)
        build_library(package / "dsistore" / LIBRARY)


class PlatformWheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        platform = super().get_tag()[2]
        library = pathlib.Path(self.get_finalized_command("build_py").build_lib) / "dsistore" / LIBRARY
        return "py3", "none", manylinux(library, platform) if library.exists() else platform


class NoSourceDistribution(sdist):
    def run(self):
        raise SystemExit(
            "dsistore has no source distribution: the engine is the Go module around this directory. Make a wheel "
            "(python -m build --wheel), or install from the repository (pip install 'git+URL#subdirectory=python')")


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


if (ROOT / "go.mod").exists():
    collect_licences()
setup(
    cmdclass={"build_py": BuildEngine, "bdist_wheel": PlatformWheel, "sdist": NoSourceDistribution},
    distclass=BinaryDistribution,
)
