#!/bin/sh
# Tests the Python package in a virtual environment of its own (several GB, because of torch).
#
#   python/test.sh prepare   makes out/venv; slow the first time, and may run beside other tests
#   python/test.sh wheel     builds the wheel and installs it there
#   python/test.sh run       does so and runs the tests on it, or says what keeps this machine from it and is content
#
# PYTHON names the interpreter; PYTHON=none leaves the Python tests out.
set -u
cd "$(dirname "$0")/.."
venv=out/venv
wheel=out/wheel
reason=out/python-left-out # why there is nothing to run
log=out/python-prepare.log
go=${GO:-go}

left_out() {
	echo "$1" >"$reason"
	exit 0
}

# Runs a command that ends when this shell is told to: else pip would go on, into the next run's environment.
ending() {
	"$@" &
	child=$!
	wait $child
}

# The interpreter: the one asked for, else the first that torch and torchrec are pinned for.
find_python() {
	for p in ${PYTHON:-python3 python3.11 python3.12 python3.13}; do
		if "$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
			command -v "$p"
			return
		fi
	done
	return 1
}

prepare() {
	mkdir -p out
	rm -rf "$reason" "$wheel" out/python-ready
	[ "${PYTHON:-}" != none ] || left_out "PYTHON=none"
	python=$(find_python) || left_out "no Python 3.11, 3.12 or 3.13 (${PYTHON:-python3, python3.11, ...})"
	[ "$($go env CGO_ENABLED)" = 1 ] && command -v "$($go env CC | cut -d ' ' -f 1)" >/dev/null ||
		left_out "no C compiler"
	"$python" -c 'import venv, ensurepip' 2>/dev/null ||
		left_out "$python has no venv and ensurepip (Debian: apt install python3-venv)"

	# The same requirements, interpreter and place need no second installation.
	state=$({ pwd && "$python" -c 'import sys; print(sys.version, sys.executable)' &&
		cat python/requirements-*.txt; } | cksum)
	if [ "$(cat $venv/ready 2>/dev/null)" != "$state" ]; then
		"$python" -m venv --clear $venv || exit 1
		# Compiling what is imported when it is imported saves 0.4 GB.
		pip="ending $venv/bin/python -m pip --disable-pip-version-check install -q --no-compile"
		child=
		trap '[ -z "$child" ] || kill $child 2>/dev/null; exit 143' TERM INT
		# A small package first: an index that cannot be reached is no fault of ours, anything after that is.
		$pip "$(grep '^setuptools==' python/requirements-test.txt)" ||
			left_out "no package index can be reached (see $log)"
		# torch first and alone: pip keeps all that it downloads until all is installed, and torch is most of it.
		# triton, 0.9 GB, goes again: it compiles for GPUs.
		$pip "$(grep '^torch==' python/requirements-test.txt)" && $pip -r python/requirements-test.txt &&
			$pip --no-deps -r python/requirements-torchrec.txt &&
			$venv/bin/python -m pip uninstall -q -y triton || exit 1
		echo "$state" >$venv/ready
	fi
}

wheel() {
	[ -f $venv/ready ] && [ ! -f "$reason" ] || return 1
	# A module as an older checkout's build leaves it: test_what_is_in_the_wheel fails if the wheel has it.
	old=$($venv/bin/python -c '
import sys, sysconfig
print(sysconfig.get_platform(), sys.implementation.cache_tag, sep="-")')
	old=python/build/lib.$old/dsistore
	mkdir -p "$old" && touch "$old/removed.py" || return 1
	$venv/bin/python -m build -q --no-isolation --wheel --outdir $wheel python &&
		$venv/bin/python -m pip --disable-pip-version-check install -q --force-reinstall --no-deps \
			$wheel/dsistore-*.whl &&
		touch out/python-ready
}

case ${1:-} in
prepare)
	mkdir -p out
	prepare >"$log" 2>&1
	;;
wheel)
	wheel >>"$log" 2>&1
	;;
run)
	if [ -f "$reason" ]; then
		echo "== Python tests LEFT OUT: $(cat "$reason")"
		exit 0
	fi
	echo "== Python tests"
	if ! wheel >>"$log" 2>&1; then
		cat "$log"
		df -h . "${TMPDIR:-/tmp}"
		echo "python/test.sh: the environment or the wheel could not be made"
		echo "It takes 7 GB, and 3 GB more of ${TMPDIR:-/tmp} while it is made"
		exit 1
	fi
	export DSISTORE_WHEEL="$(pwd)/$(ls $wheel/dsistore-*.whl)"
	cd out && exec venv/bin/python -m pytest -q -rs -p no:cacheprovider -n 2 --durations=10 ../python/tests
	;;
*)
	sed -n '2,8p' "$0"
	exit 2
	;;
esac
