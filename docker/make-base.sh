#!/usr/bin/env bash
# Make a minimal Debian image where no image registry can be reached: debootstrap from the
# machine's own package mirror, then docker import. Needs root.
#
#   docker/make-base.sh [--force] [IMAGE] [PACKAGE...]     default: artist-base:local python3
set -euo pipefail

force=no
if [[ ${1:-} == --force ]]; then
  force=yes
  shift
fi
image=${1:-artist-base:local}
packages=("${@:2}")
if [[ ${#packages[@]} -eq 0 ]]; then
  packages=(python3)
fi

if [[ $force == no ]] && docker image inspect "$image" >/dev/null 2>&1; then
  echo "$image is there already (--force makes it anew)"
  exit 0
fi
if [[ $(id -u) -ne 0 ]]; then
  echo "debootstrap needs root: sudo $0 $*" >&2
  exit 1
fi
if ! command -v debootstrap >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    debootstrap >/dev/null
fi

suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The mirror that serves this release itself, not its updates or security fixes.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
  awk -v suite="$suite" '$2 == suite { print $1; exit }')
if [[ -z $mirror ]]; then
  echo "apt knows no mirror of $suite: see /etc/apt/sources.list" >&2
  exit 1
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
echo "debootstrap of $suite from $mirror with ${packages[*]}"
include=$(IFS=,; echo "${packages[*]}")
if ! debootstrap --variant=minbase --include="$include" "$suite" "$root" "$mirror" \
  >"$root.log" 2>&1; then
  tail -n 20 "$root.log" >&2
  rm -f "$root.log"
  exit 1
fi
rm -rf "$root.log" "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* \
  "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root"/usr/share/locale/*
tar -C "$root" --numeric-owner -c . | docker import - "$image" >/dev/null
echo "made $image"
