"""Misspelled variables and wrong types are found; everything else is left alone."""

import pytest

DECLARED = ["sglang_port", "sglang_server_max_running_requests", "model_path"]
PREFIXES = ["sglang", "sglang_server", "model"]


@pytest.fixture
def variables(load):
    return load("roles/preflight/filter_plugins/variables.py")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("sglang_prot", "sglang_port"),
        ("sglang_server_max_runing_requests", "sglang_server_max_running_requests"),
        ("sglagn_port", "sglang_port"),
        ("modle_path", "model_path"),
        ("sglang_zzzzzzzzzz", ""),
    ],
)
def test_found(variables, name, meant):
    assert variables.unknown_variables([name, "sglang_port"], DECLARED, PREFIXES) == [{"name": name, "meant": meant}]


@pytest.mark.parametrize(
    "name",
    ["sglang_port", "ansible_port", "_sglang_port", "inventory_hostname", "groups", "models", "port", "nginx_port"],
)
def test_left_alone(variables, name):
    assert variables.unknown_variables([name], DECLARED, PREFIXES) == []


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ({"type": "int"}, "eighty", "unable to convert to int"),
        ({"type": "bool"}, "perhaps", "unable to convert to bool"),
        ({"type": "str", "choices": ["cpu", "cuda"]}, "tpu", "value of x must be one of: cpu, cuda, got: tpu"),
        ({"type": "dict"}, [1], "unable to convert to dict"),
    ],
)
def test_wrong_values_are_named(variables, option, value, reason):
    (error,) = variables.type_errors({"x": value}, {"x": option, "y": {"type": "int", "default": 3}})
    assert reason in error
    assert "x" in error


def test_a_required_variable_that_is_missing_is_named(variables):
    assert variables.type_errors({}, {"model_path": {"type": "path", "required": True}}) == [
        "missing required arguments: model_path"
    ]


def test_right_values_pass(variables):
    options = {"a": {"type": "int"}, "b": {"type": "bool"}, "c": {"type": "list", "elements": "str"}}
    assert variables.type_errors({"a": "8", "b": "yes", "c": ["x"]}, options) == []
