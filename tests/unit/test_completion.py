import pytest
from looks import ADDRESS, HOST, NOT_FOUND, UNIT, answer

from blackwell import completion
from blackwell.completion import Completion
from blackwell.host_errors import HostError

META = {
    "finish_reason": {"type": "length", "length": 16},
    "prompt_tokens": 3,
    "completion_tokens": 16,
    "spec_accept_length": 2.2857142857142856,
    "spec_verify_ct": 7,
}
BODY = {"text": " n8 n9", "meta_info": META}


def found(**changes):
    return {"unit": UNIT, "address": ADDRESS, "answer": answer(BODY)} | changes


def refusal(said):
    with pytest.raises(HostError) as caught:
        completion.parse(HOST, said)
    return str(caught.value)


def test_parse():
    assert completion.parse(HOST, found()) == Completion(" n8 n9", 0.25, 3, 16, META["spec_accept_length"], 7, "length")


def test_text_and_numbers():
    assert completion.render(completion.parse(HOST, found())) == (
        " n8 n9\n\n16 tokens in 0.25 s (64.0 tokens/s) after a prompt of 3; "
        "acceptance length 2.29 over 7 verifications; ended by length"
    )


def test_without_a_draft_there_is_no_acceptance_length():
    plain = {name: value for name, value in META.items() if not name.startswith("spec_")}
    said = completion.render(completion.parse(HOST, found(answer=answer(BODY | {"meta_info": plain}))))
    assert "; nothing was drafted; " in said


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"unit": UNIT | {"ActiveState": "activating", "SubState": "start-post"}, "answer": None},
            "box: sglang.service is activating (start-post) (fab -H box status)",
        ),
        (
            {"unit": NOT_FOUND, "answer": None},
            "box: there is no sglang.service on the host: deploy it with ansible-playbook site.yml",
        ),
        ({"answer": answer({"error": {"message": "too long"}}, 400)}, "box: the server answered 400: too long"),
        ({"answer": answer({"error": "too long"}, 400)}, "box: the server answered 400: too long"),
        ({"answer": answer("", 503)}, "box: the server answered 503: without a reason"),
        ({"answer": answer("timed out", 0)}, "box: the server gave no answer after 0.2 s: timed out"),
        ({"answer": answer({"object": "error"})}, "box: the server answered 200: {'object': 'error'}"),
    ],
)
def test_no_completion_and_why(changes, sentence):
    assert refusal(found(**changes)) == sentence


def test_what_was_typed():
    assert completion.wanted("n5", "16") == ("n5", 16)


@pytest.mark.parametrize(
    ("prompt", "tokens", "sentence"),
    [
        ("", "16", "--prompt is missing"),
        ("n5", "0", "--tokens is '0', not a number of tokens"),
        ("n5", "x", "--tokens is 'x', not a number of tokens"),
    ],
)
def test_what_was_typed_wrongly(prompt, tokens, sentence):
    with pytest.raises(HostError, match=sentence):
        completion.wanted(prompt, tokens)
