#!/bin/bash
# base.sh: python:3.11-slim in buildah's store. Where no image registry answers: a stand-in for it
# (Debian bookworm, its Python 3.11), so that Dockerfiles build there, too:
# `buildah bud --isolation chroot -t NAME .` Once per machine, about 90 s. Needs root.
. "$(dirname "$0")/env.sh"
IMAGE=docker.io/library/python:3.11-slim
REGISTRY_SECONDS=60
root=$CACHE/python-3.11

need_root

install_absent buildah=buildah debootstrap=debootstrap
buildah inspect --type image "$IMAGE" >/dev/null 2>&1 && exit 0
timeout "$REGISTRY_SECONDS" buildah pull -q --retry 0 "$IMAGE" >/dev/null 2>&1 && exit 0

if [ ! -f "$root.done" ]; then
  sources=/etc/apt/sources.list.d/debian.sources
  mirror=
  if [ -f "$sources" ]; then mirror=$(awk '/^URIs:/ {print $2; exit}' "$sources"); fi
  mkdir -p "$CACHE"
  # What an interrupted run left behind.
  umount -l "$root/proc" "$root/sys" 2>/dev/null || true
  rm -rf "$root"
  debootstrap --variant=minbase --include=python3,python3-pip,python3-venv,ca-certificates,procps \
    bookworm "$root" ${mirror:+"$mirror"} >"$root.log" ||
    unavailable "no Python image, neither from a registry nor by debootstrap: see $root.log"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  rm -f "$root/usr/lib/python3.11/EXTERNALLY-MANAGED"
  ln -sf python3 "$root/usr/bin/python"
  # Certificates that this machine trusts, those of its package index included.
  cat /etc/ssl/certs/ca-certificates.crt ${PIP_CERT:+"$PIP_CERT"} \
    >"$root/etc/ssl/certs/ca-certificates.crt"
  printf '[global]\ncert=/etc/ssl/certs/ca-certificates.crt\n' >"$root/etc/pip.conf"
  touch "$root.done"
fi
container=$(buildah from scratch)
buildah add -q "$container" "$root" / >/dev/null
buildah config --cmd python3 \
  --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
buildah commit -q "$container" "$IMAGE" >/dev/null
buildah rm "$container" >/dev/null
