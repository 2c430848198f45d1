#!/usr/bin/env bash
# Build the image `local` of astra_configs/images.yaml: artist on a minimal Debian.
#
#   docker/build-image.sh [IMAGE] [BASE]      default: artist-astra:local artist-base:local
#
# Dependencies are fetched here by pip, so that the build itself needs no network.
set -euo pipefail

image=${1:-artist-astra:local}
base=${2:-artist-base:local}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

"$here/ensure-engine.sh"
"$here/make-base.sh" "$base" python3

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
version=$(docker run --rm --network none --entrypoint python3 "$base" \
  -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$context" "$here/.."
"$python" -m pip install --quiet --target "$context/site-packages" \
  --python-version "$version" --only-binary=:all: "$context"/*.whl
# Bytecode now, as the container cannot write any.
docker run --rm --network none --entrypoint python3 -v "$context/site-packages:/packages" \
  "$base" -m compileall -q /packages || true
cp "$here/Dockerfile" "$here/artist" "$context/"
rm -f "$context"/*.whl
docker build --quiet --build-arg "BASE=$base" --tag "$image" "$context"
echo "built $image"
