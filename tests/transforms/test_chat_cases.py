"""All cases of chat_sdk.jsonl and the chat_sdk/ ones of bugs.jsonl, for both formats of section A."""

from __future__ import annotations

from typing import Any

import pytest
from case_files import cases, chat_record, plain
from threads import decoded, messages_of, outcome_of, target

from schemas.formats import Format
from schemas.reasons import Reject, Repair
from transforms.convert import Hooks

# `new Date(x)` of the cases that leave the zone open, made with TZ=UTC; an archive holds the instant.
DATES = {"2024-01-15T00:00:00": "2024-01-15T00:00:00Z"}

# What upstream throws for, and with it the whole list; here the bad record alone is rejected.
REJECTED_ALONE = {
    "text/missing_throws": Reject.MISSING_FIELD,
    "text/null_throws": Reject.MISSING_FIELD,
    "role/author_missing_throws": Reject.MISSING_FIELD,
    "link/url_missing_throws": Reject.MISSING_FIELD,
    "link/title_number_throws": Reject.WRONG_TYPE,
}
# Upstream throws; here the messages stay, and only what is broken in them goes.
KEPT_HERE = {
    # A missing metadata is a missing date.
    "metadata/missing_throws_with_two": ["hi", "yo"],
    # In an archive every date is a text; here it is read.
    "sort/string_dateSent_throws": ["a", "b"],
    # fetchData gave nothing: an archive then holds no data, and the text stays.
    "att/image_returns_undefined_throws": ["look"],
    "att/image_returns_null_throws": ["look"],
}
# A date that is no date compares with nothing, and V8's order then depends on its sort. Here the
# record is rejected with its reason, and the others are in the order of their dates.
INVALID_DATES = {
    "sort/invalid_middle": ["a", "c"],
    "sort/invalid_first": ["a", "c"],
    "sort/invalid_last": ["a", "c"],
    "sort/invalid_two": ["a", "b", "c", "d"],
    "sort/invalid_many": ["k0", "k2", "k9", "k11", "k6", "k8", "k3", "k5"],
    "chat-rehydrate-invalid-date": ["a", "c"],
}
# Outputs that only a JavaScript value can have, or that are corrupt.
OTHER_DATA = {
    # An ArrayBuffer in memory; a file has no such thing: the data url that a Buffer gives.
    "att/image_arraybuffer": "data:image/jpeg;base64,SlBFRw==",
    # Uint8Array.toString("base64") is "74,80,69,71" and a Blob's is "[object Blob]".
    "att/image_uint8array_corrupt": "data:image/jpeg;base64,SlBFRw==",
    "att/image_blob_corrupt": "data:image/jpeg;base64,SlBFRw==",
    # A string instead of bytes is taken for base64 without padding.
    "att/image_string_data": "data:image/jpeg;base64,abc=",
}
# A cut of upstream's leaves half a surrogate pair behind; none is ever written here.
CUT_PAIRS = ("link/url_surrogate_cut", "link/title_emoji_odd_cut")

FORMATS = {"ai": Format.AI_SDK, "tanstack": Format.TANSTACK}
ALL = cases("chat_sdk.jsonl") + [case for case in cases("bugs.jsonl") if case["kind"].startswith("chat_sdk/")]


def upper(message: dict[str, Any], _source: object) -> dict[str, Any]:
    return {**message, "content": message["content"].upper()}


def nothing(_message: object, _source: object) -> None:
    return None


TRANSFORMS = {"upper": upper, "drop_all": nothing, "undefined": nothing, None: None}


class Unsupported:
    """Notes what the hook is told, in the shape of the cases."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def __call__(self, attachment: dict[str, Any], source: dict[str, Any]) -> None:
        noted = {"type": attachment["type"], "message_id": source["id"]}
        if "name" in attachment:
            noted["name"] = attachment["name"]
        self.seen.append(noted)


def texts(messages: list[Any]) -> list[Any]:
    return [message["content"] for message in messages]


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
@pytest.mark.parametrize("case", ALL, ids=lambda case: case["name"])
def test_gives_what_the_serving_side_gives(case: dict[str, Any], fmt: str) -> None:
    name, expected = case["name"], case["expected"][fmt]
    records = [chat_record(message, DATES) for message in case["input"]]
    report = Unsupported()
    hooks = Hooks(transform_message=TRANSFORMS[case["options"].get("transform")], on_unsupported=report)
    to = target(FORMATS[fmt], include_names=case["options"].get("includeNames", False))
    if case["options"].get("target") == "openai":
        to = target(Format.OPENAI)

    good, bad = decoded(records)
    if name in REJECTED_ALONE:
        assert [reject.reason for reject in bad] == [REJECTED_ALONE[name]]
        assert not good
        assert "throws" in expected
        return
    outcome = outcome_of(records, to, hooks)
    given = messages_of(outcome)

    if name in INVALID_DATES:
        assert {reject.reason for reject in bad} == {Reject.BAD_DATE}
        assert texts(given) == INVALID_DATES[name]
    elif name in KEPT_HERE:
        assert texts(given) == KEPT_HERE[name]
        assert not bad
        assert "throws" in expected
    elif name in OTHER_DATA:
        part = given[0]["content"][1]
        url = OTHER_DATA[name]
        assert part.get("data", url) == url
        assert part.get("source", {"value": url.split(",")[1]})["value"] == url.split(",")[1]
    elif case["options"].get("target") == "openai":
        # The bug report's part list; `openai` writes a text without images as a string.
        assert texts(given) == [expected["messages"][0]["content"][0]["text"]] if fmt == "ai" else True
    elif name in CUT_PAIRS:
        whole = [text.replace("\ufffd", "") for text in texts(plain(expected["messages"]))]
        assert texts(given) == whole
    else:
        assert not bad
        assert given == plain(expected["messages"])
        assert report.seen == plain(expected["unsupported"])


def test_every_listed_exception_is_a_case() -> None:
    names = {case["name"] for case in ALL}
    listed = [*REJECTED_ALONE, *KEPT_HERE, *INVALID_DATES, *OTHER_DATA, *CUT_PAIRS]
    assert set(listed) <= names
    assert len(listed) == len(set(listed))


def test_a_failed_attachment_is_a_repair_and_not_silence() -> None:
    case = next(case for case in ALL if case["name"] == "att/image_throws")
    records = [chat_record(message, DATES) for message in case["input"]]
    row = outcome_of(records, target(Format.AI_SDK)).row
    assert row is not None
    assert [note.reason for note in row.repairs] == [Repair.ATTACHMENT_WITHOUT_DATA]
