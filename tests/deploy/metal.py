"""Hosts whose kernel module is a file, and NVIDIA's repository on them, of nearly empty packages.

What stands for a host with a kernel of its own is a sandbox host where systemd-detect-virt says so, and where modprobe
and a boot "load" what is installed. What stands for a container is a sandbox host as it is, since it is one.
"""

from driver_packages import MODULE
from target import Target, make

PORT = 8080
REPOSITORIES = f"http://127.0.0.1:{PORT}/compute/cuda/repos"
ARCHIVE = f"{REPOSITORIES}/debian12/x86_64"
FOLDER = "compute/cuda/repos/debian12/x86_64"
SERVED = "/srv/nvidia"
LOADED = "/proc/driver/nvidia/version"
NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder@U16)"

MODPROBE = f"""\
#!/bin/sh -e
[ -e {MODULE} ] || {{ echo 'modprobe: FATAL: Module nvidia not found' >&2; exit 1; }}
mkdir -p {LOADED.rpartition("/")[0]}
[ -e {LOADED} ] || echo "{NVRM.format(f"$(cat {MODULE})")}" >{LOADED}
"""
DETECT_VIRT = "#!/bin/sh\necho none\nexit 1\n"
BOOT = """\
[Unit]
Before=ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/mount -t tmpfs none /proc/driver
ExecStart=-/usr/local/sbin/modprobe nvidia

[Install]
WantedBy=multi-user.target
"""
WEB = f"""\
[Service]
ExecStart=/usr/bin/python3 -m http.server --bind 127.0.0.1 --directory {SERVED} {PORT}

[Install]
WantedBy=multi-user.target
"""


def write_program(host, path, text):
    host.write(path, text.encode())
    host.ssh(f"chmod 755 {path}")


def serve(host, repositories):
    """Serves the repositories on the host itself, as they were before."""
    host.unpack(SERVED, ".", base=repositories)
    host.write("/etc/systemd/system/web.service", WEB.encode())
    host.ssh(f"mkdir -p {SERVED}/{FOLDER.rpartition('/')[0]} && systemctl enable --quiet --now web.service")
    publish(host, "before")
    host.until(f"python3 -c 'import urllib.request as web; web.urlopen(\"{ARCHIVE}/InRelease\")'", 20)


def publish(host, name):
    """Makes a repository the one that is served, as new to apt, which asks for what changed since it last looked."""
    host.ssh(f"ln -sfn {SERVED}/{name} {SERVED}/{FOLDER} && touch {SERVED}/{name}/*")


def leave_debian(host):
    """Takes Debian's own archive from apt, which looks into it for tens of seconds and finds no driver there."""
    host.ssh("mv /etc/apt/sources.list /root/")


def load(host, version):
    """Makes a version the one that is loaded."""
    host.ssh(f"mkdir -p /proc/driver/nvidia && echo '{NVRM.format(version)}' >{LOADED}")


def add_headers(host):
    """The headers of the running kernel, as far as anything looks."""
    host.ssh("mkdir -p /lib/modules/$(uname -r)/build && touch /lib/modules/$(uname -r)/build/Makefile")


def make_metal(name, repositories) -> Target:
    """A host with a kernel of its own, without its headers yet, and with NVIDIA's repository."""
    host = make(name)
    write_program(host, "/usr/local/sbin/systemd-detect-virt", DETECT_VIRT)
    write_program(host, "/usr/local/sbin/modprobe", MODPROBE)
    host.write("/etc/systemd/system/kernel.service", BOOT.encode())
    host.ssh("systemctl enable --quiet --now kernel.service")
    serve(host, repositories)
    return host
