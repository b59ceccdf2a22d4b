"""The model that is served is there for the service to read."""


def test_the_service_reads_every_file(host, intent):
    user, paths = intent["sglang"]["user"], intent["model"]["paths"]
    command = "runuser --user=%s -- env --chdir=/ find -L" + " %s" * len(paths) + " ! -readable"
    found = host.run(command, user, *paths)
    assert (found.rc, found.stdout) == (0, "")
