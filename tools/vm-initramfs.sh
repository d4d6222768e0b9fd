#!/bin/bash
# vm-initramfs.sh PACKAGES OUT PROGRAM…: makes the test machine's only file system. PACKAGES is what
# vm-packages.sh left; OUT gets tests/vm/init, busybox, the kernel modules that are needed and each
# PROGRAM with the libraries that it has on this machine, in /usr/bin.
set -eu

packages=$1
out=$2
shift 2
modules=(virtio_pci virtio_net nvme-tcp dm-mod raid1 loop zram nvmet)

root=$out.d
kernel=$(basename "$packages"/lib/modules/*)
busybox=$(realpath "$packages/bin/busybox")
rm -rf "$root"
mkdir -p "$root"/{dev,etc,proc,sys,tmp,run,mnt,var/lib} "$root"/usr/{bin,sbin,lib,lib64}
for folder in bin sbin lib lib64; do
	ln -s "usr/$folder" "$root/$folder"
done
install -m 755 tests/vm/init "$root/init"
printf '%s\n' 'root:x:0:0::/:/bin/sh' 'drivewatt:x:100:100::/:/bin/sh' >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'drivewatt:x:100:' >"$root/etc/group"

printf '%s\n' "${modules[@]}" >"$root/etc/modules"

install "$busybox" "$root/bin/busybox"
for applet in $("$busybox" --list); do
	[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done

# Each module with all that it depends on.
for module in "${modules[@]}"; do
	sed -n "s|^\(kernel/[^ ]*/$module\.ko\):|\1|p" "$packages/lib/modules/$kernel/modules.dep"
done | tr ' ' '\n' | sort -u | while read -r file; do
	install -D -m 644 "$packages/lib/modules/$kernel/$file" "$root/lib/modules/$kernel/$file"
done
"$busybox" depmod -b "$root" "$kernel"

for program; do
	install "$program" "$root/usr/bin/"
	{ ldd "$program" 2>/dev/null || true; } | grep -o '/[^ ]*' || true
done | sort -u | while read -r library; do
	mkdir -p "$root$(dirname "$library")"
	cp -L "$library" "$root$library"
done
(cd "$root" && find . | "$busybox" cpio -o -H newc -R 0:0 --quiet) >"$out"
rm -r "$root"
