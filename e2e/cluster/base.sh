#!/bin/bash
# base.sh: a stand-in for python:3.11-slim in buildah's store (Debian bookworm, its Python 3.11),
# so that Dockerfiles build without an image registry: `buildah bud --isolation chroot -t NAME .`
# Once per machine, about 90 s. Needs root.
. "$(dirname "$0")/env.sh"
IMAGE=docker.io/library/python:3.11-slim
root=$CACHE/python-3.11

install_absent buildah=buildah debootstrap=debootstrap
buildah inspect --type image "$IMAGE" >/dev/null 2>&1 && exit 0

if [ ! -f "$root.done" ]; then
  mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources)
  mkdir -p "$CACHE"
  debootstrap --variant=minbase --include=python3,python3-pip,python3-venv,ca-certificates,procps \
    bookworm "$root" "$mirror" >"$root.log"
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
