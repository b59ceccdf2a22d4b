#!/bin/bash
# Makes the directory $1 a flat repository (wiki.debian.org/DebianRepository/Format) of packages that have the names of NVIDIA's: the
# toolkit in two versions, the first with the files of the directory $2, the second with a driver that it asks for. Prints the Release,
# which is to be signed.
set -euo pipefail
archive=$1 toolkit=$2
rm -rf "$archive" "$archive.tree"
mkdir -p "$archive" "$archive.tree/usr/local"
cp --archive --link "$toolkit" "$archive.tree/usr/local/cuda-13.0"
cd "$archive"

# NAME VERSION [DEPENDENCY]: a package of what is in the tree, which is gone afterwards.
build() {
  mkdir -p "$archive.tree/DEBIAN"
  {
    printf '%s\n' "Package: $1" "Version: $2" 'Architecture: amd64' 'Maintainer: root <root@localhost>' 'Description: made up'
    [[ -z ${3-} ]] || echo "Depends: $3"
  } >"$archive.tree/DEBIAN/control"
  dpkg-deb --build --root-owner-group -Znone "$archive.tree" "$1_$2_amd64.deb" >/dev/null
  rm -r "$archive.tree"
}

sum() { sha256sum "$1" | cut -d ' ' -f 1; }

build cuda-toolkit-13-0 13.0.2-1
build cuda-toolkit-13-0 13.0.3-1 cuda-drivers
build cuda-drivers 580.95.05-1
for deb in *.deb; do
  dpkg-deb --field "$deb"
  printf '%s\n' "Filename: ./$deb" "Size: $(stat -c %s "$deb")" "SHA256: $(sum "$deb")" ''
done >Packages
printf '%s\n' 'Origin: NVIDIA' "Date: $(LC_ALL=C date -u '+%a, %d %b %Y %T UTC')" 'SHA256:' " $(sum Packages) $(stat -c %s Packages) Packages"
