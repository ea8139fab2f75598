"""Builds the engine, a Go package, into the wheel as a C shared library.

The library talks to Python through ctypes, so that one wheel serves every CPython of a platform: its tag is py3-none-PLATFORM.
"""

import os
import pathlib
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = "libdsistore.dylib" if sys.platform == "darwin" else "libdsistore.so"


class BuildEngine(build_py):
    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib) / "dsistore" / LIBRARY
        if self.editable_mode:
            target = HERE / "src" / "dsistore" / LIBRARY
        target.parent.mkdir(parents=True, exist_ok=True)
        # Symbols of this library are its own, also beside another Go library that exports the same ones.
        flags = "-s -w" if sys.platform == "darwin" else "-s -w -extldflags=-Wl,-Bsymbolic"
        subprocess.run(
            [os.environ.get("GO", "go"), "build", "-buildmode=c-shared", "-trimpath", "-tags=pebblegozstd",
             f"-ldflags={flags}", "-o", str(target), "./cshared"],
            cwd=HERE, check=True, env={**os.environ, "CGO_ENABLED": "1"},
        )
        target.with_suffix(".h").unlink(missing_ok=True)


class PlatformWheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildEngine, "bdist_wheel": PlatformWheel}, distclass=BinaryDistribution)
