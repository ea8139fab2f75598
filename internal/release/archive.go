package main

import (
	"archive/tar"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/internal/version"
)

// checkStatic is an error if a program needs something of the system that it runs on but the kernel; on macOS, which
// has no stable interface of its kernel, but the system's own libraries.
func checkStatic(path string, p platform) error {
	if p.os == "darwin" {
		f, err := macho.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		libraries, err := f.ImportedLibraries()
		for _, l := range libraries {
			if !strings.HasPrefix(l, "/usr/lib/") && !strings.HasPrefix(l, "/System/Library/") {
				return fmt.Errorf("%s needs %s", path, l)
			}
		}
		return err
	}
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	interpreted := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if len(libraries) > 0 || interpreted {
		return fmt.Errorf("%s is not static: it needs %v", path, libraries)
	}
	return nil
}

// documents puts what all archives have beside the programs into a directory.
func (r *release) documents(dir string) error {
	for _, d := range []string{"completions", "man/man1"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"LICENSE", "NOTICE", "THIRD_PARTY.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	env := append(r.goEnv(r.host), "CGO_ENABLED=0")
	licences := filepath.Join(dir, "licences")
	if _, err := output("", env, "go", "run", "./internal/notice", "-texts", licences); err != nil {
		return err
	}
	// As the programs are built, so that their packages are compiled once.
	if _, err := output("", env, "go", "run", "-tags", "grpcnotrace", "-trimpath", "./internal/man",
		filepath.Join(dir, "man", "man1")); err != nil {
		return err
	}
	for _, name := range programs {
		for shell, file := range map[string]string{"bash": name + ".bash", "zsh": "_" + name, "fish": name + ".fish"} {
			text, err := output("", nil, filepath.Join(r.programsOf(r.host), name), "completion", shell)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "completions", file), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// archiveName is the name of a platform's archive, less .tar.gz, and of the directory in it.
func archiveName(p platform) string { return "dsistore-" + version.Current + "-" + p.String() }

// archives packs the programs of each platform.
func (r *release) archives() error {
	documents := filepath.Join(r.work, "documents")
	if err := r.documents(documents); err != nil {
		return err
	}
	for _, p := range platforms {
		name := archiveName(p)
		err := writeArchive(filepath.Join(r.out, name+".tar.gz"), name, r.date, r.programsOf(p), documents)
		if err != nil {
			return err
		}
	}
	return nil
}

// writeArchive packs what is in some directories under one name: in the order of names, of one time, and of nobody, so
// that the same files give the same bytes.
func writeArchive(path, name string, at time.Time, dirs ...string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	packed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(from string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := os.ReadFile(from)
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(dir, from)
			if err != nil {
				return err
			}
			mode := int64(0o644)
			if i, err := e.Info(); err != nil {
				return err
			} else if i.Mode()&0o100 != 0 {
				mode = 0o755
			}
			h := &tar.Header{Name: name + "/" + filepath.ToSlash(inside), Mode: mode, Size: int64(len(content)),
				ModTime: at, Format: tar.FormatUSTAR}
			if err := archive.WriteHeader(h); err != nil {
				return err
			}
			_, err = archive.Write(content)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return packed.Close()
}
