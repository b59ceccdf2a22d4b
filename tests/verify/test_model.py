"""The model that is served is there for the service to read, and where it was fetched, the commit that is asked for."""

import json


def test_the_service_reads_every_file(host, intent):
    user, paths = intent["sglang"]["user"], intent["model"]["paths"]
    command = "runuser --user=%s -- env --chdir=/ find -L" + " %s" * len(paths) + " ! -readable"
    found = host.run(command, user, *paths)
    assert (found.rc, found.stdout) == (0, "")


def test_what_was_fetched_is_the_commit_with_every_file_in_its_size(host, intent):
    for source in intent["model"]["fetched"]:
        record = json.loads(host.check_output("cat %s", f"{source['directory']}/.fetched.json"))
        assert (record["repository"], record["revision"]) == (source["repository"], source["revision"])
        listed = host.check_output("find -L %s -type f -printf '%%s %%P\\n'", source["directory"]).splitlines()
        assert {f"{file['size']} {file['path']}" for file in record["files"]} <= set(listed)
