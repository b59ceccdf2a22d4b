"""The GPUs that the server is to use are there, and used by it."""

import pytest

pytestmark = pytest.mark.gpu


def test_enough_gpus(host, intent):
    gpus = host.check_output("nvidia-smi --query-gpu=index --format=csv,noheader").split()
    assert len(gpus) >= intent["server"]["tp_size"]


def test_the_service_computes_on_as_many_as_asked_for(host, intent, properties):
    lines = host.check_output("nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader").splitlines()
    used = {line.split(", ")[0]: line.split(", ")[1] for line in lines}
    group = properties["ControlGroup"]
    ours = [gpu for gpu, pid in used.items() if group in host.check_output("cat /proc/%s/cgroup", pid)]
    assert len(ours) == intent["server"]["tp_size"]
