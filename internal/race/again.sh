#!/bin/sh
# Prints arguments of go test for what does less under the race detector, in the folders of packages that are named:
# tests of files that import this package, those with rapid.Check where TestMain calls Rapid, and all tests of a package
# where a file without tests imports it.
set -eu
files= packages=
for dir in "$@"; do
	for f in $(grep -l '/internal/race"' "$dir"/*_test.go 2>/dev/null); do
		if grep -q '^func TestMain(' "$f"; then
			files="$files $f $(grep -l 'rapid\.Check' "$dir"/*_test.go || true)"
		elif grep -q '^func Test' "$f"; then
			files="$files $f"
		else
			files="$files $(ls "$dir"/*_test.go)"
		fi
		packages="$packages $dir"
	done
done
[ -n "$files" ] || { echo "again.sh: no test there imports internal/race" >&2; exit 1; }
names=$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' $files | grep -v '^TestMain$' | sort -u | paste -s -d '|' -)
echo "-run ^($names)\$ $(printf '%s\n' $packages | sort -u | paste -s -d ' ' -)"
