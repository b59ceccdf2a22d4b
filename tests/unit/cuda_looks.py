"""What the probe of the role cuda and apt print on hosts that are not at hand, written from documented formats.

Sources of the formats: states of packages in dpkg-query(1); steps of a simulation in apt-get(8). The names of the
packages that cuda-toolkit-13-0 brings are those of 12.8 in github.com/NVIDIA/nvidia-container-toolkit/issues/883, with
the other version in them; versions in the manner of github.com/Jimver/cuda-toolkit (13.0.2).
"""

BARE = {"os": "debian 12", "machine": "x86_64", "disk_mb": "90000", "python": "3.11", "nvcc": "", "record": ""}
HOME = "/usr/local/cuda-13.0"

# fmt: off
BROUGHT = [
    "cuda-cccl", "cuda-command-line-tools", "cuda-compiler", "cuda-crt", "cuda-cudart", "cuda-cudart-dev",
    "cuda-cuobjdump", "cuda-cupti", "cuda-cupti-dev", "cuda-cuxxfilt", "cuda-documentation", "cuda-driver-dev",
    "cuda-gdb", "cuda-libraries", "cuda-libraries-dev", "cuda-nsight-compute", "cuda-nvcc", "cuda-nvdisasm",
    "cuda-nvml-dev", "cuda-nvprune", "cuda-nvrtc", "cuda-nvrtc-dev", "cuda-nvtx", "cuda-nvvm", "cuda-profiler-api",
    "cuda-sanitizer", "cuda-tools", "cuda-visual-tools", "gds-tools", "libcublas", "libcublas-dev", "libcudla",
    "libcudla-dev", "libcufft", "libcufft-dev", "libcufile", "libcufile-dev", "libcurand", "libcurand-dev",
    "libcusolver", "libcusolver-dev", "libcusparse", "libcusparse-dev", "libnpp", "libnpp-dev", "libnvfatbin",
    "libnvfatbin-dev", "libnvjitlink", "libnvjitlink-dev", "libnvjpeg", "libnvjpeg-dev",
]
# fmt: on
COMMON = ["cuda-toolkit-13-0-config-common", "cuda-toolkit-13-config-common", "cuda-toolkit-config-common"]


def printed(values, packages=()):
    """The lines of the probe."""
    lines = [f"{name}={value}" for name, value in values.items()]
    return lines + [f"package={state}|{name}|{version}" for state, name, version in packages]


def step(name, version, verb="Inst"):
    return f"{verb} {name} ({version} NVIDIA:NVIDIA [amd64])"


def plan(version="13.0.2-1"):
    """What apt-get --simulate says of the toolkit where nothing of it is installed."""
    names = [f"{name}-13-0" for name in BROUGHT]
    brought = [step(name, "13.0.88-1") for name in (*names, *COMMON, "nsight-compute-2025.3.1")]
    others = [
        "Inst build-essential (12.9 Debian:12.0/stable [amd64])",
        "Inst linux-libc-dev (6.1.153-1 Debian:12.0/stable [amd64])",
    ]
    return ["NOTE: This is only a simulation!", *others, *brought, step("cuda-toolkit-13-0", version)]
