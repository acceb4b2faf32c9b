"""Word lists of languages: function words, question words, irregular forms.

General lists of the languages themselves; they know nothing of any data. A language without a
list here is still stemmed; its frequent words then weigh little because they are frequent.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

_FUNCTION_WORDS: Final = {
    "english": """
        a an the and or but nor so yet if then than that this these those as at by for from in into
        of off on onto out over to up with within without about above across after again against
        along among around before behind below beneath beside between beyond down during except
        inside near outside since through throughout toward towards under until upon via per
        i me my mine myself you your yours yourself yourselves he him his himself she her hers
        herself it its itself we us our ours ourselves they them their theirs themselves one
        am is are was were be been being do does did done doing have has had having will would
        shall should can could may might must ought not no don doesn didn isn aren wasn weren won
        wouldn shouldn couldn hasn haven hadn ain cannot ll ve re s t d m o y
        there here just also too very some any each every all both such only own same other
        because while though although whether either neither unless""",
    "german": """
        der die das den dem des ein eine einen einem einer eines und oder aber denn doch sondern
        wenn als dass daß ob weil damit ich mich mir mein meine meinen meinem meiner du dich dir
        dein deine er ihn ihm sein seine seinen seinem seiner sie ihr ihre ihren ihrem ihrer es wir
        uns unser unsere euch euer man sich in im ins an am ans auf aus bei beim bis durch für
        gegen mit nach ohne seit über um unter von vom vor zu zum zur zwischen bin bist ist sind
        seid war waren wäre sein gewesen habe hast hat haben hatte hatten wird werden wurde wurden
        würde kann können konnte muss müssen soll sollen sollte will wollen darf nicht kein keine
        auch nur noch schon sehr so da dort hier dieser diese dieses diesem diesen jeder jede""",
    "french": """
        le la les l un une des du de d au aux et ou mais donc or ni car si que qu qui ce c cet cette
        ces je j me m moi mon ma mes tu te t toi ton ta tes il elle on se s son sa ses lui nous
        notre nos vous votre vos ils elles leur leurs y en à dans par pour sur sous avec sans chez
        entre vers suis es est sommes êtes sont étais était étaient été être ai as a avons avez ont
        avait avaient eu avoir sera serait ne n pas plus aussi très ici là même comme""",
    "spanish": """
        el la los las lo un una unos unas y e o u pero sino si que de del al a ante con contra
        desde en entre hacia hasta para por según sin sobre tras yo me mi mis mí tú te tu tus ti él
        ella ello se su sus nos nosotros nuestro nuestra vosotros os ellos ellas les le este esta
        esto estos estas ese esa eso esos esas soy eres es somos son era eran fue fueron ser sido
        estoy está están estaba estar he ha han había haber hay no también muy ya más como""",
    "italian": """
        il lo la l i gli le un uno una e ed o ma se che chi di del dello della dei degli delle d a
        al allo alla ai agli alle da dal dalla in nel nella nei nelle con su sul sulla per tra fra
        io mi mio mia miei mie tu ti tuo tua lui lei si suo sua suoi sue noi ci nostro nostra voi vi
        vostro loro questo questa questi queste quello quella sono sei è siamo siete era erano stato
        essere ho hai ha abbiamo avete hanno aveva avere non anche più molto già come""",
    "portuguese": """
        o a os as um uma uns umas e ou mas se que de do da dos das em no na nos nas por pelo pela
        para com sem sobre entre até ao à aos às eu me mim meu minha meus minhas tu te teu tua ele
        ela se seu sua seus suas nós nosso nossa vós eles elas lhe lhes este esta isto esse essa
        isso aquele aquela sou és é somos são era eram foi foram ser sido estou está estão estava
        estar tenho tem têm tinha ter há não também muito já mais como""",
    "dutch": """
        de het een en of maar want dus als dat die dit deze ik me mij mijn je jij jou jouw u uw hij
        hem zijn haar zij ze wij we ons onze jullie hun er hier daar in op aan bij met van voor na
        naar om over onder tot uit door tegen tussen te ben bent is zijn was waren geweest heb hebt
        heeft hebben had hadden word wordt worden werd kan kunnen kon moet moeten zal zullen zou
        niet geen ook nog al wel zo zeer""",
}

_QUESTION_WORDS: Final = {
    "english": "who whom whose what which when where why how",
    "german": "wer wen wem wessen was welcher welche welches wann wo wohin woher warum wieso wie",
    "french": "qui quoi quel quelle quels quelles quand où pourquoi comment combien",
    "spanish": "quién quiénes qué cuál cuáles cuándo dónde adónde cómo cuánto cuántos cuánta",
    "italian": "chi cosa quale quali quando dove perché come quanto quanti quanta",
    "portuguese": "quem que qual quais quando onde porque como quanto quantos quanta",
    "dutch": "wie wat welk welke wanneer waar waarom hoe hoeveel",
}

_IRREGULAR_FORMS: Final = {
    "english": """
        arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|
        begin began begun|bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|
        break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|
        catch caught|choose chose chosen|come came|creep crept|deal dealt|dig dug|
        draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|dwell dwelt|
        eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|
        fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|
        freeze froze frozen|get got gotten|give gave given|go went gone|grind ground|
        grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|
        know knew known|lay laid|lead led|lean leant|leap leapt|learn learnt|leave left|lend lent|
        light lit|lose lost|make made|mean meant|meet met|pay paid|prove proven|ride rode ridden|
        ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|
        send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|
        shrink shrank shrunk|
        sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|
        speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun|spoil spoilt|
        spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung|
        strike struck stricken|strive strove striven|swear swore sworn|sweep swept|
        swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|
        tell told|think thought|throw threw thrown|understand understood|wake woke woken|
        wear wore worn|weave wove woven|weep wept|win won|withdraw withdrew withdrawn|
        write wrote written|rewrite rewrote rewritten|overcome overcame|undergo underwent undergone|
        man men|woman women|child children|person people|foot feet|tooth teeth|goose geese|
        mouse mice|life lives|wife wives|knife knives|leaf leaves|half halves|shelf shelves|
        wolf wolves|thief thieves|loaf loaves|calf calves|analysis analyses|crisis crises|
        thesis theses|hypothesis hypotheses|criterion criteria|phenomenon phenomena|
        index indices|matrix matrices|vertex vertices|datum data|medium media|
        good better best|bad worse worst""",
}


def _forms(groups: str) -> MappingProxyType[str, str]:
    forms: dict[str, str] = {}
    for group in groups.split("|"):
        base, *others = group.split()
        for other in others:
            forms.setdefault(other, base)
    return MappingProxyType(forms)


FUNCTION_WORDS: Final = MappingProxyType(
    {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
)
"""By Snowball language: words that carry grammar, not content; never indexed."""

QUESTION_WORDS: Final = MappingProxyType(
    {language: frozenset(words.split()) for language, words in _QUESTION_WORDS.items()}
)
"""By Snowball language: words that ask; indexed, but a query drops them."""

IRREGULAR_FORMS: Final = MappingProxyType(
    {language: _forms(groups) for language, groups in _IRREGULAR_FORMS.items()}
)
"""By Snowball language: inflected form to base form, where a stemmer cannot know."""
