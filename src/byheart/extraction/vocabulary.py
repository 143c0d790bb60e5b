"""List the words that help to tell names from other words."""

# ruff: noqa: SIM905 - word lists are easier to read and to extend as running text

from __future__ import annotations

# Scripts without spaces between words. Hangul has spaces and is not one of them.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff"
)

# Words that are never a name and never begin one: "The Beatles" becomes "Beatles".
STOP_WORDS = frozenset(
    """
    a an the this that these those i me my mine you your yours he him his she her hers it its we us
    our ours they them their theirs who whom whose which what when where why how and or but nor so
    yet if then else than as at by for from in into of off on onto out over to up with without is
    are was were be been being am do does did done has have had having will would shall should can
    could may might must not no yes ok okay also there here
    """.split()
)

# Ordinary words that begin sentences, headings and list items with a capital letter.
ORDINARY_WORDS = STOP_WORDS | frozenset(
    """
    about above according across actually after afterwards again against all allow almost along
    already although always among another any anyone anything anyway apparently apply around ask
    avoid based basically be because before behind below beside besides between beyond both
    bring build buy call change check choose click close come compare complete consider
    continue copy create currently daily decide decided define delete deploy despite disable done
    down during each earlier either enable ensure enter especially essentially even eventually ever
    every everyone everything except fetch few finally find first fix follow followed fortunately
    four frequently further furthermore generally get give given go good great hello help hence hey
    hi hopefully however import important include indeed inside install instead ideally just keep
    last lastly later least less let like likely list load long look lots made main mainly make many
    maybe meanwhile merge more moreover most mostly move much name need neither never nevertheless
    new next nobody none normally nothing notably now obviously often old once one only open
    optionally other others otherwise outside overall own per perhaps place please plus
    possibly prefer presumably previously probably problem put quickly quite rather read really
    recall recently regarding regardless remember remove rename replace return review right run same
    save say second see seems select send set several similarly simply since small some somebody
    someone something sometimes soon sorry specifically start still stop such suddenly sure
    surely take tell test thank thanks therefore think third though three through throughout
    thus today together tomorrow tonight too toward towards try turn two typically ultimately under
    unfortunately unless unlike until update upon upgrade use used using usually various
    verify very via view wait want watch well whatever whenever whereas wherever whether while
    whoever within work works worse write wrong yesterday
    agenda answer appendix background bug caution changes conclusion contents context decision
    decisions description details example examples figure goal goals idea info
    introduction issue issues item items note notes option options outcome overview
    part phase problem problems purpose question questions reason reference references
    report result results section solution status step steps summary table task tasks tip title
    todo topic usage warning
    aber alle auch auf aus bei das dass dem den der des die dies diese dieser doch ein eine einem
    einen einer er es für hier ich ihr im ist jetzt kein keine man mein mit nach nicht noch nur oder
    sein sich sie sind und uns unser von vor war was weil wenn wer wie wir wird zu zum zur
    """.split()
)

# Articles of other languages: alone, they are ordinary words; "Los Angeles" needs its article.
FOREIGN_ARTICLES = frozenset("el la los las un una le les une il lo gli os as uma het een".split())

# A single capitalised word with such an ending begins a sentence far more often than it is a name.
ORDINARY_ENDINGS = ("ing", "ings", "tion", "tions", "ment", "ments", "ness")

# Small words inside a name: "Bank of England", "Rio de Janeiro".
NAME_CONNECTORS = frozenset("of de da do del di van von der den la du bin al".split())

# A compound of two words that begins with one of these is plain English, not a name: "long-term".
HYPHENATION_OPENINGS = frozenset(
    """
    all anti aware based best big born built case class cutting day deep double down driven due
    early easy eight eighty end ever ex far fast fifty fine first five forty four free friendly
    front full fully general good half hand hard heavy high higher highly hour independent known
    large last late later left less life light like little long longer looking loss low lower made
    main many mid middle minute month more most near never new newly next nine ninety non null old
    one only open part per poor pretty pseudo purpose quarter quasi re read real related right rough
    round same second semi seven seventy short side single six sixty slow small soft specific step
    still strong ten term third thirty three time top true twenty twice two type ultra upper very
    weak week well whole wide wise world write year zero
    """.split()
)
# After one of these prefixes, a word is plain English if it is ordinary or has an ordinary ending.
HYPHENATION_PREFIXES = frozenset(
    """
    co cross inter mid mini multi over post pre pro self sub super under
    """.split()
)
PREFIXED_ENDINGS = (
    *("able", "ably", "al", "ally", "ance", "ant", "ar", "ary", "ate", "ed", "ence", "ency", "ent"),
    *("ful", "ible", "ic", "ics", "ing", "ion", "ions", "ish", "ism", "ist", "ity", "ive", "less"),
    *("ly", "ment", "ness", "ory", "ous", "sis", "ure", "wide"),
)
PREFIXED_WORDS = frozenset(
    """
    author authors byte cell cells check class core cut day days disease file founder head hour
    language line linear look match mortem order page pay paid patient patients person phase place
    platform point process project purpose release rely risk run runs second service site start
    step system test tests thread threads time tree type up use user users war way week word worker
    workers year years zero
    """.split()
)
# A compound that ends with one of these is plain English: "docker-based", "error-prone".
HYPHENATION_CLOSINGS = frozenset(
    """
    adjusted all associated available aware based bearing blind born bound breaking built centered
    centric class coded conscious consuming containing controlled cutting day days dependent derived
    dimensional directed driven due effective efficient end ended enhanced expressing facing first
    fit fold formed free friendly fully generated grained handed heavy high how importantly
    independent induced intensive known labeled laden last left less level like linked living long
    looking low made making matched mediated minded minute month needed negative old only oriented
    owned paced packed party positive produced prone proof purpose quality ready related resistant
    responsive rich right rise running safe scale seeking sensitive shaped side sided size sized
    some specific speed spread standing step stranded style taking targeted term tested time treated
    type typed versa weighted wide winning wise world worthy written year years
    """.split()
)

# A compound that contains one of these is plain English: "set-up".
HYPHENATED_FUNCTION_WORDS = frozenset(
    """
    a an and as at by do for from in into no not of off on or out over so the to under up with
    """.split()
)

# Lower-case names that often precede a version. Any other lower-case word counts as a name only
# before a number that is clearly a version. Many numbers are not: "weighs 2.5", "section 3.1".
PRODUCTS = frozenset(
    """
    airflow android angular ansible apsw bash bazel cargo celery chrome clang clickhouse cmake
    cuda cudnn curl debian deno django docker elasticsearch emacs fastapi fedora ffmpeg firefox
    flask gcc git gitlab glibc grafana grpc gunicorn hadoop haskell helm httpx hypothesis ios
    java javascript jax jenkins jquery julia jupyter kafka keras kotlin kubernetes laravel
    lancedb linux llama llvm lua macos mariadb matplotlib memcached mistral mongodb mypy mysql
    neovim nginx node nodejs npm numpy nvm onnx onnxruntime openai opencv openssl opensearch
    pandas perl pgvector php pip pnpm podman poetry polars postgres postgresql prometheus
    protobuf pydantic pytest python pytorch qdrant qt rabbitmq rails react redis ruby ruff rust
    rustc safari scala scikit scipy selenium sklearn spark sqlalchemy sqlite starlette svelte
    swift tailwind tensorflow terraform tmux tokio torch transformers typescript ubuntu uv
    uvicorn vim vite vllm vue webpack xcode yarn zsh
    """.split()
)
