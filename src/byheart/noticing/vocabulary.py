"""The words that are no names, however they are written."""

# ruff: noqa: SIM905 - word lists are easier to read and to extend as running text

from __future__ import annotations

# Scripts written without spaces between words; Hangul is not among them.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff"
)

# Never a name, and never the beginning of one: "The Beatles" is "Beatles".
STOP_WORDS = frozenset(
    """
    a an the this that these those i me my mine you your yours he him his she her hers it its we us
    our ours they them their theirs who whom whose which what when where why how and or but nor so
    yet if then else than as at by for from in into of off on onto out over to up with without is
    are was were be been being am do does did done has have had having will would shall should can
    could may might must not no yes ok okay also there here
    """.split()
)

# Ordinary words that open sentences, headings and list items with a capital letter.
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

# Articles of other languages are ordinary alone, but "Los Angeles" and "Le Monde" need them.
FOREIGN_ARTICLES = frozenset("el la los las un una le les une il lo gli os as uma het een".split())

# Lone words with these endings open sentences far more often than they name anybody.
ORDINARY_ENDINGS = ("ing", "ings", "tion", "tions", "ment", "ments", "ness")

# Small words inside a name: "Bank of England", "Rio de Janeiro".
NAME_CONNECTORS = frozenset("of de da do del di van von der den la du bin al".split())

# A hyphenated word with such a part is plain English ("up-to-date", "read-only"), not a name.
HYPHENATION_PARTS = frozenset(
    """
    a all an and anti as at aware based best born built by case class co cross date day deep depth
    do double down driven due easy end ever ex far fast fine first five follow for four free
    friendly from front full fully good half hand hard heavy high hour in independent inter into
    known last late left less level life like long looking low made main mid mini minute month multi
    near new newly no non not of off old on one only open or out over part per post pre pro purpose
    quarter re read ready real related right round second self semi set short side single six size
    small so soft specific step sub super ten term the third three time to two type ultra under up
    week well wide wise with world write year zero
    """.split()
)
