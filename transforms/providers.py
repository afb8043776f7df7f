"""What each provider accepts in a replayed history: one row a provider, each rule a column.

The guards and the checker read this table and share nothing else. To add a provider, add a row; a
rule that none has yet needs a column, its check in `transforms/check/`, and its step in
`transforms/guards/provider.py`.

Sources: the providers' API references and public issue threads (none was called); for Mistral the
validator of the package mistral-common 1.13. What every provider wants (calls and results paired by
id, no id used twice, arguments objects) needs no column.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class Provider(enum.StrEnum):
    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    BEDROCK_CONVERSE = "bedrock_converse"
    MISTRAL = "mistral"


class First(enum.Enum):
    """What may stand first, system messages aside."""

    ANY = "any"
    USER = "user"
    # An assistant's text may; a call turn must follow a user or a result turn.
    NO_CALL = "no call before a user"


class SameRole(enum.Enum):
    """What two turns of one role in a row are: all adapters put results and user texts into one turn."""

    ACCEPTED = "accepted"
    # The API joins them: accepted, but the guards join them where the table of providers asks for it.
    JOINED = "joined"
    REJECTED = "rejected"


class IdRule(msgspec.Struct, frozen=True):
    """The ids that calls may have: characters, and how many. `length` (exact) goes before `longest`."""

    characters: str | None = None
    longest: int | None = None
    length: int | None = None

    def is_valid(self, call_id: str) -> bool:
        """Whether a call may have that id."""
        if not call_id or call_id != call_id.strip():
            return False
        if self.length is not None and len(call_id) != self.length:
            return False
        if self.longest is not None and len(call_id) > self.longest:
            return False
        return self.characters is None or re.fullmatch(f"[{self.characters}]+", call_id) is not None


class Rules(msgspec.Struct, frozen=True):
    """One provider's row. The last two are rules of a request, not of a history: no guard meets them."""

    source: str
    ids: IdRule
    # Whether an id may come again in a later call; where nobody knows, the checker does not convict.
    ids_again: bool = True
    results_behind_call: bool = True
    result_needs_name: bool = False
    system_leads: bool = False
    blank_text: bool = True
    first: First = First.ANY
    same_role: SameRole = SameRole.ACCEPTED
    guards_join: bool = False
    user_behind_result: bool = True
    final_assistant: bool = True
    final_trailing_space: bool = True


_WORD = "a-zA-Z0-9_-"

RULES: Mapping[Provider, Rules] = MappingProxyType(
    {
        Provider.OPENAI_CHAT: Rules(
            source="OpenAI API reference, chat completions: messages",
            ids=IdRule(longest=40),
        ),
        Provider.OPENAI_RESPONSES: Rules(
            source="OpenAI API reference, responses: input items",
            ids=IdRule(longest=64),
            ids_again=False,
            results_behind_call=False,
        ),
        Provider.ANTHROPIC: Rules(
            source="Anthropic API reference, messages: tool use, system, alternation",
            ids=IdRule(characters=_WORD, longest=64),
            ids_again=False,
            system_leads=True,
            blank_text=False,
            first=First.USER,
            same_role=SameRole.JOINED,
            final_assistant=False,
            final_trailing_space=False,
        ),
        Provider.GEMINI: Rules(
            source="Gemini API reference, generateContent: function calling, systemInstruction",
            ids=IdRule(),
            result_needs_name=True,
            system_leads=True,
            blank_text=False,
            first=First.NO_CALL,
            same_role=SameRole.JOINED,
            guards_join=True,
            final_assistant=False,
        ),
        Provider.BEDROCK_CONVERSE: Rules(
            source="Amazon Bedrock API reference, Converse: messages, toolUse, toolResult",
            ids=IdRule(characters=_WORD, longest=64),
            ids_again=False,
            system_leads=True,
            blank_text=False,
            first=First.USER,
            same_role=SameRole.REJECTED,
            guards_join=True,
            final_assistant=False,
            final_trailing_space=False,
        ),
        Provider.MISTRAL: Rules(
            source="mistral-common 1.13, protocol/instruct/validator.py",
            ids=IdRule(characters="a-zA-Z0-9", length=9),
            system_leads=True,
            first=First.USER,
            user_behind_result=False,
            final_assistant=False,
        ),
    }
)

# What the guards hold every history to where no provider is named.
ANY_PROVIDER = Rules(source="the rules that all providers share", ids=IdRule())
