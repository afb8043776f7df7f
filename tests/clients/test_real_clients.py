"""Replay rows through the request builders of the real clients, offline, and their typed models.

What a builder makes of a row is what would go over the wire. It must be what the provider's SDK takes
(its typed models, or the service's own shapes) and must not have lost a text on the way. Known losses,
of the builders and not of the rows: none sends a tool result's name but Gemini's, `status` reaches only
Anthropic and Bedrock, Gemini's has no call ids, and Mistral's leaves out the text beside a call.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from histories import HISTORY, as_langchain, guarded
from hypothesis import HealthCheck, given, settings
from langchain_core.messages import messages_from_dict
from product import ARCHIVES, FIVE, rows, run

from transforms.guards.rules import GuardOptions
from transforms.providers import Provider

pytestmark = pytest.mark.live
warnings.filterwarnings("ignore")


def openai_chat() -> Callable[[Any], Any]:
    from langchain_openai import ChatOpenAI
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter

    model = ChatOpenAI(model="gpt-4o", api_key="none")  # type: ignore[arg-type]
    typed = TypeAdapter(list[ChatCompletionMessageParam])

    def payload(messages: Any) -> Any:
        built = model._get_request_payload(messages)["messages"]
        typed.validate_python(built)
        return built

    return payload


def openai_responses() -> Callable[[Any], Any]:
    from langchain_openai import ChatOpenAI
    from openai.types.responses import ResponseInputParam
    from pydantic import TypeAdapter

    model = ChatOpenAI(model="gpt-4o", api_key="none", use_responses_api=True)  # type: ignore[arg-type]
    typed = TypeAdapter(ResponseInputParam)

    def payload(messages: Any) -> Any:
        built = model._get_request_payload(messages)["input"]
        typed.validate_python([_with_id(item) for item in built])
        return built

    return payload


def _with_id(item: Any) -> Any:
    """The SDK's type of an assistant's earlier message wants an id and a status, which its API gave;
    the builder of langchain-openai sends neither for a message that did not come from there."""
    if item.get("role") == "assistant":
        return {"id": "msg_1", "status": "completed", **item}
    return item


def anthropic() -> Callable[[Any], Any]:
    from anthropic.types import MessageParam
    from langchain_anthropic import ChatAnthropic
    from pydantic import TypeAdapter

    model = ChatAnthropic(model="claude-sonnet-4-5", api_key="none")  # type: ignore[call-arg, arg-type]
    typed = TypeAdapter(list[MessageParam])

    def payload(messages: Any) -> Any:
        built = model._get_request_payload(messages)
        typed.validate_python(built["messages"])
        # The API joins assistant turns in a row; the builder has joined the user's, results first.
        assert built["messages"][0]["role"] == "user"
        return [built.get("system"), built["messages"]]

    return payload


def gemini() -> Callable[[Any], Any]:
    from langchain_google_genai.chat_models import _parse_chat_history

    def payload(messages: Any) -> Any:
        system, contents = _parse_chat_history(messages)
        assert all(content.parts for content in contents)
        # Contents are the SDK's own typed models; a call turn has as many results behind it.
        for content, behind in zip(contents, [*contents[1:], None], strict=True):
            calls = [part for part in content.parts or [] if part.function_call]
            if calls:
                assert behind is not None
                results = [part for part in behind.parts or [] if part.function_response]
                assert len(results) == len(calls)
        return [
            system and system.model_dump(mode="json"),
            [content.model_dump(mode="json") for content in contents],
        ]

    return payload


def bedrock_converse() -> Callable[[Any], Any]:
    import botocore.session
    from botocore.validate import ParamValidator
    from langchain_aws.chat_models.bedrock_converse import _messages_to_bedrock

    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = service.operation_model("Converse").input_shape

    def payload(messages: Any) -> Any:
        built, system = _messages_to_bedrock(messages)
        request = {"modelId": "m", "messages": built, "system": system}
        report = ParamValidator().validate(request, shape)
        assert not report.has_errors(), report.generate_report()
        _alternates([message["role"] for message in built])
        for message in built:
            for part in message["content"]:
                assert part.get("text", "x").strip(), "Converse refuses a blank text"
        return [system, built]

    return payload


def mistral() -> Callable[[Any], Any]:
    from langchain_mistralai.chat_models import _convert_message_to_mistral_chat_message
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.validator import MistralRequestValidatorV13, ValidationMode

    validator = MistralRequestValidatorV13(mode=ValidationMode.agnostic)

    def payload(messages: Any) -> Any:
        built = [_convert_message_to_mistral_chat_message(message) for message in messages]
        validator.validate_request(ChatCompletionRequest(messages=built))
        return built

    return payload


def _alternates(roles: list[str]) -> None:
    assert roles[:1] == ["user"]
    assert all(one != other for one, other in itertools.pairwise(roles))


CLIENTS = {
    Provider.OPENAI_CHAT: openai_chat,
    Provider.OPENAI_RESPONSES: openai_responses,
    Provider.ANTHROPIC: anthropic,
    Provider.GEMINI: gemini,
    Provider.BEDROCK_CONVERSE: bedrock_converse,
    Provider.MISTRAL: mistral,
}


@pytest.fixture(scope="module", params=CLIENTS, ids=str)
def client(request: pytest.FixtureRequest) -> Any:
    return request.param, CLIENTS[request.param]()


# A final assistant text, as the APIs want it of a request.
TRIMS_FINAL_TEXT = (Provider.ANTHROPIC, Provider.BEDROCK_CONVERSE)
LOSES_TEXT_BESIDE_CALLS = (Provider.MISTRAL,)


def goes_through(provider: Provider, payload: Callable[[Any], Any], messages: list[Any]) -> None:
    """The builder takes the row, the typed model takes what it built, and no text is lost."""
    built = payload(messages_from_dict(messages))
    sent = all_texts(json.loads(json.dumps(built, default=repr)))
    for message in messages:
        content = message["data"]["content"]
        texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        if provider in LOSES_TEXT_BESIDE_CALLS and message["data"].get("tool_calls"):
            texts = []
        for text in texts:
            if text.strip():
                trimmed = provider in TRIMS_FINAL_TEXT and text.rstrip() in sent
                assert text in sent or trimmed or as_json_in(text, built), text
        for call in message["data"].get("tool_calls", []):
            assert call["name"] in sent


def all_texts(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return set().union(*(all_texts(item) for item in items)) if items else set()


def as_json_in(text: str, built: Any) -> bool:
    """Gemini's builder sends a result that is JSON as the value that it spells."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return json.dumps(value) in json.dumps(json.loads(json.dumps(built, default=repr)))


def test_every_replay_row_of_the_archives(client: Any, tmp_path: Path) -> None:
    provider, payload = client
    inputs = [argument for pattern in FIVE for argument in ("--input", ARCHIVES / pattern)]
    run(tmp_path / "out", *inputs, "--dataset", "replay", "--provider", provider)
    replayed = rows(tmp_path / "out", "replay")
    assert len(replayed) > 400
    for row in replayed:
        goes_through(provider, payload, row["messages"])


@given(messages=HISTORY)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_histories(client: Any, messages: list[Any]) -> None:
    provider, payload = client
    conversion = guarded(messages, GuardOptions(allowed_tools=frozenset({"f", "g"}), provider=provider))
    if any(turn.role in ("user", "assistant") for turn in conversion.turns):
        goes_through(provider, payload, as_langchain(conversion))
