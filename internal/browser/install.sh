#!/bin/sh
# Puts a headless Chromium into out/browser, for the tests and measurements of pages: no root, no system package,
# nothing outside of the repository. It is the one that the npm package @sparticuz/chromium has, built for x86-64 Linux,
# with the libraries and fonts that it needs; the version and the hash of the package are pinned here. Where it cannot
# be had, out/browser-left-out says why, and the tests skip and say so.
# A Chromium in PATH, or the one that DSISTORE_CHROMIUM names, makes it needless.
set -u
cd "$(dirname "$0")/../.."
version=153.0.0
integrity=sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==
dir=out/browser
reason=out/browser-left-out

left_out() {
	rm -rf $dir.new
	for program in chromium chromium-browser google-chrome chrome-headless-shell; do
		[ "${DSISTORE_CHROMIUM:-}" = none ] || ! command -v $program >/dev/null || exit 0 # Find takes that
	done
	echo "$1" >$reason
	echo "install.sh: no browser: $1" >&2
	exit 0
}

mkdir -p out
rm -rf $reason $dir.new
[ "${DSISTORE_CHROMIUM:-}" != none ] || left_out "DSISTORE_CHROMIUM is none"
if [ -n "${DSISTORE_CHROMIUM:-}" ]; then
	command -v "$DSISTORE_CHROMIUM" >/dev/null && exit 0
	echo "install.sh: there is no $DSISTORE_CHROMIUM, which DSISTORE_CHROMIUM names" >&2
	exit 1
fi
[ "$(cat $dir/version 2>/dev/null)" = $version ] && exit 0
[ "$(uname -sm)" = "Linux x86_64" ] || left_out "no pinned build for $(uname -sm); put a chromium into PATH"
for program in npm node tar; do command -v $program >/dev/null || left_out "no $program; put a chromium into PATH"; done

mkdir -p $dir.new/package
npm pack --loglevel=error --cache $dir.new/cache --pack-destination $dir.new @sparticuz/chromium@$version \
	>/dev/null 2>$dir.new/log ||
	left_out "npm pack failed ($(tail -n 1 $dir.new/log))"
rm -rf $dir.new/cache
tgz=$dir.new/sparticuz-chromium-$version.tgz
hash='const hash = require("crypto").createHash("sha512").update(require("fs").readFileSync(process.argv[1]))
process.stdout.write(hash.digest("base64"))'
found=sha512-$(node -e "$hash" $tgz)
[ "$found" = $integrity ] || { echo "install.sh: $tgz is $found, not $integrity" >&2; exit 1; }
tar -xzf $tgz -C $dir.new && rm $tgz || exit 1

unpack() {
	node -e 'const fs = require("fs"), brotli = fs.readFileSync(process.argv[1])
fs.writeFileSync(process.argv[2], require("zlib").brotliDecompressSync(brotli))' "$1" "$2"
}
unpack $dir.new/package/bin/chromium.br $dir.new/headless_shell || exit 1
chmod +x $dir.new/headless_shell
# What stands for a graphics card is looked for beside the program.
for part in al2023 fonts swiftshader; do
	to=$dir.new/$part
	[ $part != swiftshader ] || to=$dir.new
	mkdir -p $to && unpack $dir.new/package/bin/$part.tar.br $dir.new/part.tar &&
		tar -xf $dir.new/part.tar -C $to && rm $dir.new/part.tar || exit 1
done
# The package's own looks for fonts elsewhere.
cat >$dir.new/fonts/fonts.conf <<'END'
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
END
cp $dir.new/package/LICENSE $dir.new/LICENSE && rm -rf $dir.new/package
cat >$dir.new/chromium <<'END'
#!/bin/sh
dir=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH="$dir/al2023/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FONTCONFIG_PATH="$dir/fonts"
exec "$dir/headless_shell" "$@"
END
chmod +x $dir.new/chromium
$dir.new/chromium --version >/dev/null 2>$dir.new/log || left_out "it does not start here ($(head -n 1 $dir.new/log))"
echo $version >$dir.new/version
rm -rf $dir && mv $dir.new $dir
