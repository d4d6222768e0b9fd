#!/bin/bash
# make-deb.sh BUILD [VERSION]: a Debian package of BUILD/drivewattd, whose name is printed. Without
# VERSION it is the newest tag's, else 0~gitN of the N-th commit: a later one is always higher.
set -eu

build=$(realpath "$1")
version=${2:-$(git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//; s/-/+/; s/-/./g')}
[ -n "$version" ] || version="0~git$(git rev-list --count HEAD).$(git rev-parse --short HEAD)"
architecture=$(dpkg --print-architecture)
work=$build/deb
stage=$work/stage
rm -rf "$stage" "$work/debian"
mkdir -p "$stage/DEBIAN" "$work/debian"

${MAKE:-make} --no-print-directory BUILD="$build" DESTDIR="$stage" PREFIX=/usr SYSCONFDIR=/etc \
	install >"$work/install.log"
strip --strip-unneeded "$stage/usr/sbin/drivewattd"
find "$stage/usr/share/man" -type f -exec gzip -9n {} +

# dpkg-shlibdeps wants to stand beside a debian/control.
echo 'Source: drivewatt' >"$work/debian/control"
shlibs=$(cd "$work" && dpkg-shlibdeps -O stage/usr/sbin/drivewattd | sed 's/^shlibs:Depends=//')

sed -e "s|@VERSION@|$version|; s|@ARCHITECTURE@|$architecture|; s|@SHLIBS@|$shlibs|" \
	-e "s|@INSTALLED_SIZE@|$(du -k -s --exclude=DEBIAN "$stage" | cut -f1)|" \
	deploy/debian/control.in >"$stage/DEBIAN/control"
install -m 644 deploy/debian/conffiles "$stage/DEBIAN"
install -m 755 deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm "$stage/DEBIAN"
(cd "$stage" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) \
	>"$stage/DEBIAN/md5sums"

package=$build/drivewatt_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$stage" "$package" >/dev/null
echo "$package"
