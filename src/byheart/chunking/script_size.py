"""Give texts of every script chunks of about the same size.

An English model cuts words of other scripts into pieces of one or two letters, so a chunk of 400
tokens would be a third of a Greek paragraph. Such a text gets more tokens for each chunk.
"""

from __future__ import annotations

from byheart.language.terms import UNSPACED
from byheart.startup.late_patterns import late_pattern

# In English prose, a token of the usual models has this many characters.
_USUAL_CHARACTERS = 4.5
# A chunk gets at most so many times the tokens: each window of it is embedded and compared.
_MOST_TIMES = 3.0
# A text with fewer letters beyond ASCII than this is English with names, or code.
_LEAST_SHARE = 0.01
_BEYOND_ASCII = late_pattern(rf"[^\W\d_\x00-\x7f{UNSPACED}]")
_UNSPACED_LETTER = late_pattern(f"[{UNSPACED}]")


def scale_to_script(content: str, token_count: int, target_tokens: int) -> int:
    """Return the tokens that a chunk of a text may have, more if its script needs more tokens.

    A character of an unspaced script is about a token, and says as much as one.
    """
    if content.isascii() or not token_count:
        return target_tokens
    unspaced = len(_UNSPACED_LETTER.findall(content))
    characters, tokens = len(content) - unspaced, token_count - unspaced
    if len(_BEYOND_ASCII.findall(content)) < _LEAST_SHARE * len(content) or tokens <= 0:
        return target_tokens
    times = _USUAL_CHARACTERS * tokens / characters
    return round(target_tokens * min(max(times, 1.0), _MOST_TIMES))
