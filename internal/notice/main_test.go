package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpToDate: NOTICE and THIRD_PARTY.md are what the modules of today's go.mod make of them.
func TestUpToDate(t *testing.T) {
	root := filepath.Join("..", "..")
	modules, err := all(root)
	if err != nil {
		if strings.Contains(err.Error(), "go list: ") {
			t.Skip(err) // a module for Linux that this machine has not got, and no network
		}
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{noticeFile: notice(modules), listFile: table(modules)} {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want) {
			t.Errorf("%s is not what the dependencies ask for: run make licences", name)
		}
	}
	dir := t.TempDir()
	if err := copyTexts(dir, modules); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(found) < len(modules) {
		t.Errorf("%d files for %d modules: %v", len(found), len(modules), err)
	}
}

// TestStandard: the licence of the standard library, which is in every program, goes beside them too.
func TestStandard(t *testing.T) {
	std, err := standard(".", nil)
	if err != nil {
		t.Skip(err) // this distribution of Go has no licence
	}
	dir := t.TempDir()
	if err := copyTexts(dir, []module{std}); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "std@1.*", "LICENSE"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil || !strings.Contains(string(text), "The Go Authors") || kinds(text)[0] != "BSD-3-Clause" {
		t.Errorf("%s: %v", text, err)
	}
}

func TestKinds(t *testing.T) {
	const apache = "\n   Apache License\n  Version 2.0, January 2004\n"
	const mit = "MIT License\nPermission is hereby granted, free of charge, to any person\nobtaining a copy\n"
	const isc = "Permission to use, copy, modify, and/or distribute this software for any purpose\nwith or without " +
		"fee is hereby granted\n"
	const two = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted\n"
	const three = two + "to endorse or promote products derived from\nthis software\n"
	for text, want := range map[string]string{
		apache: "Apache-2.0", mit: "MIT", isc: "ISC", two: "BSD-2-Clause", three: "BSD-3-Clause",
		three + mit: "BSD-3-Clause MIT",
		two + three: "BSD-2-Clause BSD-3-Clause", "GNU GENERAL PUBLIC LICENSE": "", "": "",
	} {
		if got := strings.Join(kinds([]byte(text)), " "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
