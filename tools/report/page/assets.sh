#!/bin/sh
# Puts the chart library of the page into assets/, from the npm package that asset.json pins by version and hash. Needs
# npm and node; building dsistat needs neither, because assets/ is in the repository. Run it after changing asset.json,
# then make licences.
set -eu
cd "$(dirname "$0")"
field() { node -e 'process.stdout.write(String(require("./assets/asset.json")[process.argv[1]]))' "$1"; }
name=$(field name) version=$(field version)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm pack --silent --pack-destination "$dir" "$name@$version" >/dev/null
found=sha512-$(node -e '
    const hash = require("crypto").createHash("sha512").update(require("fs").readFileSync(process.argv[1]))
    process.stdout.write(hash.digest("base64"))' "$dir"/*.tgz)
[ "$found" = "$(field integrity)" ] || {
    echo "assets.sh: $name@$version is $found, not $(field integrity)" >&2
    exit 1
}
tar -xzf "$dir"/*.tgz -C "$dir"
cp "$dir/package/dist/d3.min.js" "$dir/package/LICENSE" assets/
sha256sum assets/d3.min.js
