# Prints what the driver of a host depends on, one key=value a line; a key that repeats is a list. POSIX sh. Changes nothing.
say() { printf '%s=%s\n' "$1" "$2"; }

# Files of a driver that no package owns: a .run installer's, or those that a container runtime mounts.
unpackaged() {
  for file in /usr/bin/nvidia-installer /usr/bin/nvidia-uninstall /usr/bin/nvidia-smi /usr/lib/*-linux-gnu/libcuda.so.[0-9]*.*; do
    if [ -f "$file" ] && [ ! -L "$file" ] && ! dpkg-query -S "$file" >/dev/null 2>&1; then say unpackaged "$file"; fi
  done
}

say os "$(. /etc/os-release && echo "$ID $VERSION_ID")"
say machine "$(uname -m)"
say kernel "$(uname -r)"
say container "$(systemd-detect-virt --container)"
say nvrm "$(sed -n 's/^NVRM version: //p' /proc/driver/nvidia/version 2>/dev/null)"
say headers "$([ -e "/lib/modules/$(uname -r)/build/Makefile" ] && echo true)"
unpackaged
# Status, name, version. The names are those of everything that can be part of a driver, a kernel or its headers.
dpkg-query -Wf 'package=${db:Status-Abbrev}|${Package}|${Version}\n' '*nvidia*' '*libcuda*' '*libnvcuvid*' '*libnvoptix*' 'cuda-*' \
  'linux-image-*' 'linux-headers-*' 'proxmox-kernel-*' 'proxmox-headers-*' 'pve-kernel-*' 'pve-headers-*' 2>/dev/null
# The archives that the installed versions come from, in apt's words.
dpkg-query -Wf '${binary:Package} ${db:Status-Status}\n' '*nvidia*' '*libcuda*' '*libnvcuvid*' '*libnvoptix*' 'cuda-drivers*' 2>/dev/null |
  sed -n 's/ installed$//p' | LC_ALL=C xargs -r apt-cache policy 2>/dev/null | sed 's/^/policy=/'
# The source lists that name NVIDIA's repositories.
grep -rHE '^[^#]*/compute/cuda/repos/' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | sed 's/^/source=/'
exit 0
