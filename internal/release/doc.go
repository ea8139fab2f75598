// Command release makes the files of a release from the commit that is checked out: make release.
//
//	dsistore-VERSION-OS-ARCH.tar.gz            dsi and dsistat, man pages, completions, licences
//	dsistore-VERSION-py3-none-PLATFORM.whl     the Python package
//	dsistore-VERSION.cdx.json                  what of others is in them (CycloneDX)
//	SHA256SUMS
//
//	commit ──> programs of each platform ──┬──> archives ──┐
//	   │          (no cgo, no paths)       │               ├──> tried: installed elsewhere, and a table read
//	   └──> wheels (zig as C compiler) ────┴──> SBOM ──────┘
//
// The same commit and toolchain give the same bytes: no time but that of the commit, no path, no name of a machine. It
// is checked, by building this machine's programs again from a copy without a repository and with an empty build cache,
// and the wheel a second time. What cannot be made here is left out by name; what is made and wrong is an error.
package main
