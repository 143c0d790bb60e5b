"""List the names that models and clients give to roles, tools and turns.

Special tokens and tags consist of few words: `tool_calls`, `system-reminder`, `start_of_turn`.
The rules of `control_marks` combine these words, so that a new token of the same kind needs no new
entry.
"""

from __future__ import annotations

# The tags that Byheart puts around quoted texts.
OUR_TAGS = ("identity", "summary", "pinned", "passage", "message")
# Speakers, at the beginning of a line and before a colon, in the languages that users of models
# speak most.
ROLES = frozenset(
    (
        *("human", "user", "assistant", "system", "developer", "ai", "bot", "chatbot", "gpt"),
        *("chatgpt", "claude", "model", "tool", "function", "prompter", "system prompt"),
        *("system message", "user message", "assistant message", "ai assistant"),
        *("tool result", "tool output", "tool call", "function result", "function call"),
        *("observation", "thought", "action", "action input", "final answer"),
        *("benutzer", "nutzer", "assistent", "mensch", "usuario", "usuário", "asistente"),
        *("assistente", "sistema", "humano", "humain", "utilisateur", "système", "utente"),
        *("gebruiker", "kullanıcı", "sistem", "asistan", "użytkownik", "asystent"),
        *("người dùng", "trợ lý", "hệ thống", "pengguna", "asisten", "χρήστης", "βοηθός"),
        *("пользователь", "ассистент", "помощник", "система", "человек", "користувач"),
        *("用户", "用戶", "使用者", "助手", "系统", "系統", "人类", "人類", "开发者", "开发人员"),
        *("ユーザー", "ユーザ", "アシスタント", "システム", "人間", "사용자", "어시스턴트"),
        *("시스템", "인간", "المستخدم", "المساعد", "النظام", "משתמש", "מערכת", "עוזר"),
        *("उपयोगकर्ता", "सहायक", "सिस्टम", "ผู้ใช้", "ผู้ช่วย", "ระบบ"),
    )
)
# Headings in the prompt format of instruction-tuned models: "### Instruction:".
HEADING_WORDS = frozenset(
    ("instruction", "instructions", "input", "response", "output", "context", "prompt", "question")
)
# A tag that consists of one of these names alone is a control mark.
TAG_NAMES = frozenset(
    (
        *("system", "sys", "user", "assistant", "human", "ai", "bot", "developer", "tool"),
        *("tools", "function", "functions", "invoke", "parameter", "inst", "instruction"),
        *("instructions", "reminder", "prompt", "prompter", "think", "thinking", "thought"),
        *("reasoning", "reflection", "scratchpad", "context", "task", "hook", "result"),
        *("permissions", "s", "bos", "eos", "pad", "unk", "mask", "cls", "sep", "sop", "eop"),
        *("eod", "eot", "eoh", "eoa", "eom", "eosys", "suf", "mid"),
    )
)
# A tag of two or more words that contains one of these is a control mark.
COMPOUND_WORDS = frozenset(
    (
        *("system", "sys", "user", "assistant", "human", "developer", "agent", "agents", "bot"),
        *("tool", "tools", "function", "functions", "invoke", "call", "calls", "result"),
        *("results", "reminder", "reminders", "instruction", "instructions", "prompt", "prompts"),
        *("turn", "turns", "context", "environment", "conversation", "command", "hook", "think"),
        *("thinking", "thought", "reasoning", "token", "query", "response", "bash", "stdout"),
        *("stderr", "role", "fim", "ide", "memory", "permission", "permissions", "message"),
        *("messages", "header", "subagent", "guidelines", "notification"),
    )
)
# A placeholder that the reader of a document fills in ends like this: <user-id>, <token_type>.
PLACEHOLDER_TAILS = frozenset(
    ("id", "ids", "key", "type", "url", "uri", "path", "dir", "list", "count", "number", "size")
)
# Words of special tokens in square brackets.
BRACKET_WORDS = frozenset(
    (
        *("inst", "sys", "system", "user", "assistant", "human", "tool", "tools", "prompt"),
        *("prompts", "calls", "args", "content", "results", "cls", "sep", "mask", "pad", "unk"),
        *("bos", "eos", "eot", "eop", "eod", "think", "thinking", "img", "audio", "prefix"),
        *("suffix", "middle", "instruction", "instructions", "reminder", "settings"),
        *("available", "call", "model"),
    )
)
