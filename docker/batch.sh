#!/usr/bin/env bash
# Run an experiment in a container, or on a Ray cluster of containers.
#
#   docker/batch.sh [--ray WORKERS] EXPERIMENT.yaml [OUT]     default OUT: runs/NAME-OF-ITS-FOLDER
#
# OUT belongs to the caller (behind sudo: to whoever called that). Run it again to resume. The
# experiment and the files it names lie in or below the current folder, which the container reads.
# A container gets at most 8 GiB of memory; ARTIST_MEMORY=16g changes that.
set -euo pipefail

workers=
if [[ ${1:-} == --ray ]]; then
  workers=${2:?--ray WORKERS: a number}
  shift 2
fi
experiment=${1:?usage: docker/batch.sh [--ray WORKERS] EXPERIMENT.yaml [OUT]}
here=$(cd "$(dirname "$0")" && pwd)
inside=$(realpath --relative-base="$PWD" "$experiment")
if [[ ! -f $experiment || $inside == /* ]]; then
  echo "$experiment: no such file in or below $PWD; go to the folder that holds it" >&2
  exit 2
fi
out=${2:-runs/$(basename "$(dirname "$(realpath "$experiment")")")}

caller=${SUDO_UID:-$(id -u)} group=${SUDO_GID:-$(id -g)}
if [[ ! -d $out ]]; then
  # As the caller, so that everything on the way to it is theirs too.
  if [[ $caller != "$(id -u)" ]]; then
    setpriv --reuid "$caller" --regid "$group" --clear-groups mkdir -p "$out"
  else
    mkdir -p "$out"
  fi
fi

export ARTIST_USER=$caller:$group ARTIST_HERE=$PWD ARTIST_EXPERIMENT=$inside
ARTIST_NAME=$(basename "$(realpath "$out")") ARTIST_RESULTS=$(dirname "$(realpath "$out")")
export ARTIST_NAME ARTIST_RESULTS

if docker compose version >/dev/null 2>&1; then
  compose=(docker compose)
else
  compose=(docker-compose)
fi
if [[ -z $workers ]]; then
  exec "${compose[@]}" --file "$here/compose.yaml" --project-name artist run --rm -T batch
fi
# Two clusters do not meet: each has its own project, and with it its own network and secret.
RAY_AUTH_TOKEN=$(head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n')
export RAY_AUTH_TOKEN
cluster=("${compose[@]}" --file "$here/compose.ray.yaml" --project-name "artist-ray-$$")
trap '"${cluster[@]}" down --timeout 5 >/dev/null 2>&1' EXIT
"${cluster[@]}" up --detach --scale "worker=$workers" head worker
"${cluster[@]}" run --rm -T sweep
