#!/usr/bin/env bash
# Build an image of artist on BASE, which must have Python 3.11 or newer.
#
#   docker/build-image.sh [--ray] [IMAGE] [BASE]
#
# Default: artist:local (with --ray: artist-ray:local) on artist-base:local, which
# docker/make-base.sh makes where it is missing. Libraries come from the machine's own pip, in the
# versions of constraints.txt; the build itself needs no network.
set -euo pipefail

extra= name=artist:local
if [[ ${1:-} == --ray ]]; then
  extra='[ray]' name=artist-ray:local
  shift
fi
image=${1:-$name}
base=${2:-artist-base:local}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

"$here/ensure-engine.sh"
if [[ $base == artist-base:local ]]; then
  "$here/make-base.sh" "$base" python3
fi
in_base() { docker run --rm --network none --user "$(id -u):$(id -g)" --entrypoint python3 "$@"; }
version=$(in_base "$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$context/wheel" "$here/.."
wheel=$(echo "$context"/wheel/*.whl)
fetch=("$python" -m pip install --quiet --no-compile --only-binary=:all:
  --python-version "$version" --constraint "$here/../constraints.txt")
"${fetch[@]}" --target "$context/package" --no-deps "$wheel"
# Everything that the wheel wants, then without the wheel itself.
"${fetch[@]}" --target "$context/libraries" "$wheel$extra"
rm -rf "$context"/libraries/{artist,artist_sim-*,bin}

# What no run of artist uses.
(cd "$context/libraries"
  find . -depth -type d \( -name tests -o -name include \) -exec rm -rf {} +
  find . -type f \( -name '*.pyi' -o -name '*.pxd' -o -name '*.pyx' -o -name '*.a' \) -delete
  rm -rf pyarrow/src pyarrow/lib*{flight,s3}.so.* pyarrow/_{flight,s3fs}.*.so
  rm -rf ray/{jars,cpp,rllib,serve,llm,dashboard/client})

# Bytecode now, as a container cannot write any; checked by nobody, so that equal sources make
# equal layers. Files of other Python versions in a library do not compile, and need not.
in_base --volume "$context:/context" "$base" \
  -m compileall -q --invalidation-mode unchecked-hash -s /context -p /opt/artist \
  /context/package /context/libraries >/dev/null || true

cp "$here"/{Dockerfile,artist,ray,ray-sweep} "$context/"
rm -rf "$context/wheel"
mkdir "$context/cache"
docker build --quiet --build-arg "BASE=$base" --tag "$image" "$context" >/dev/null
docker run --rm --network none --read-only --tmpfs /tmp "$image" \
  sim --trace tiny-batch --racks 1 --out /tmp/check --quiet >/dev/null
echo "built $image: $(docker image inspect --format '{{.Size}}' "$image" | awk '{print int($1/1e6)}') MB"
