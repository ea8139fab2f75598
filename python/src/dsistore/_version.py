"""The version of the package and of the engine in it, which the build puts there."""

VERSION = "0.1.0.dev0"
