#!/usr/bin/env bash
# Make a Docker engine and Compose answer, on a Debian machine or CI runner that may have neither.
# Installs Debian's docker.io and docker-compose and starts dockerd where needed; leaves a running
# engine alone.
set -euo pipefail

install() {
  echo "installing $*"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

if ! docker compose version >/dev/null 2>&1 && ! command -v docker-compose >/dev/null; then
  if [[ $(id -u) -ne 0 ]]; then
    echo "no Docker Compose, and only root can install it: sudo $0" >&2
    exit 1
  fi
  install docker-compose
fi

log=/var/log/artist-dockerd.log

engine_answers() { docker version --format '{{.Server.Version}}' 2>/dev/null; }

if version=$(engine_answers); then
  echo "Docker engine $version answers"
  exit 0
fi

if [[ -n ${DOCKER_HOST:-} ]]; then
  echo "no engine answers at DOCKER_HOST=$DOCKER_HOST: start that one, or unset DOCKER_HOST" >&2
  exit 1
fi
if [[ $(id -u) -ne 0 ]]; then
  echo "no Docker engine answers, and only root can start one: sudo $0" >&2
  exit 1
fi

if ! command -v dockerd >/dev/null; then
  install docker.io iptables ca-certificates
fi

# An engine that is coming up or going down holds its pid file: wait for what it becomes.
# A pid file that outlived its engine keeps the next one from starting.
pid_file=/var/run/docker.pid
for _ in $(seq 60); do
  if [[ ! -f $pid_file ]] || ! kill -0 "$(cat "$pid_file")" 2>/dev/null; then
    rm -f "$pid_file"
    break
  fi
  if version=$(engine_answers); then
    echo "Docker engine $version answers"
    exit 0
  fi
  sleep 1
done

echo "starting dockerd, log in $log"
setsid nohup dockerd >"$log" 2>&1 </dev/null &

for _ in $(seq 60); do
  if version=$(engine_answers); then
    echo "Docker engine $version answers"
    exit 0
  fi
  sleep 1
done
echo "dockerd did not answer within 60 s; the end of $log:" >&2
tail -n 20 "$log" >&2
exit 1
