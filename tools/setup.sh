#!/usr/bin/env bash
# Everything a fresh Debian with Python 3.11 needs: SWI-Prolog, a virtual environment in .venv, and
# the package with its extras. Does nothing when that has been done for the same pyproject.toml and
# constraints.txt. Needs root or sudo only for what apt has to install.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly venv=${VENV:-.venv}
readonly log=${SETUP_LOG:-/tmp/orchestrata-memory-setup-$(id -u).log}
readonly stamp=$venv/.ready

say() { printf '• %s\n' "$*"; }

fail() {
  printf '\n✗ %s\n' "$*" >&2
  exit 1
}

# Run quietly; on failure show the end of what it said.
quietly() {
  if ! "$@" >>"$log" 2>&1; then
    tail -n 25 "$log" >&2
    fail "failed: $* (all of it: $log)"
  fi
}

# Install Debian packages, as root or with sudo.
apt_install() {
  command -v apt-get >/dev/null ||
    fail "$* is needed, and this is no Debian: install it with your system's packages and try again"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "run this as root, or install sudo: apt-get install $*"
    as_root=(sudo)
  fi
  say "installing $* (apt)"
  "${as_root[@]}" apt-get update >>"$log" 2>&1 || true
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends "$@"
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  fail "Python 3.11 or newer is needed (PYTHON=/path/to/python make setup)"
}

make_venv() {
  local python=$1 version
  [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && return
  say "making $venv with $("$python" --version)"
  rm -rf "$venv"
  if ! "$python" -m venv "$venv" >>"$log" 2>&1; then # Debian splits ensurepip off
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    rm -rf "$venv"
    apt_install "python$version-venv"
    quietly "$python" -m venv "$venv"
  fi
}

# Torch for the CPU is about 200 MB; the plain registry's Linux build carries CUDA, several GB.
install_torch() {
  local version
  version=$(sed -n 's/^torch==//p' constraints.txt)
  if "$venv/bin/python" -c 'import torch' >/dev/null 2>&1; then
    return
  fi
  say "installing torch $version for the CPU"
  if "$venv/bin/pip" install --quiet "torch==$version+cpu" \
    ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} >>"$log" 2>&1; then
    return
  fi
  cat <<MESSAGE
  pip's sources have no CPU build of torch. The build with CUDA comes instead: about 3 GB to
  download, 7 GB on disk. To avoid it, stop now (Ctrl-C) and run again with TORCH_INDEX_URL set to
  the index of CPU builds that PyTorch's "Get started" page names.
MESSAGE
  sleep "${TORCH_GRACE_SECONDS:-5}"
  quietly "$venv/bin/pip" install "torch==$version"
}

main() {
  local python wanted
  command -v swipl >/dev/null || apt_install swi-prolog-nox
  python=$(find_python)
  wanted=$("$python" --version 2>&1; pwd; sha256sum pyproject.toml constraints.txt)
  if [ -x "$venv/bin/orchestrata-memory" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  : >"$log"
  make_venv "$python"
  install_torch
  say "installing orchestrata-memory and what it needs (a few minutes the first time)"
  quietly "$venv/bin/pip" install --constraint constraints.txt --editable '.[all,dev]'
  printf '%s\n' "$wanted" >"$stamp"
  say "ready: $venv/bin/orchestrata-memory"
}

main
